"""What an application does with LangChain, unchanged; the results as JSON.

The SDKs under it take *_BASE_URL and *_API_KEY from the environment.
"""

import os

import cases
import pydantic
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

PROMPT = "grüß dich"


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return "rain"


class Answer(pydantic.BaseModel):
    """An answer."""

    answer: str


def openai(model):
    return ChatOpenAI(model=model)


def responses(model):
    return ChatOpenAI(model=model, use_responses_api=True)


def anthropic(model):
    return ChatAnthropic(model=model)


def google(model):
    return ChatGoogleGenerativeAI(model=model, base_url=os.environ["GEMINI_BASE_URL"])


def invoke(chat, result):
    result["text"] = chat.invoke(PROMPT).text


def stream(chat, result):
    for chunk in chat.stream(PROMPT):
        result["text"] += chunk.text


def take_call(message, result):
    call = message.tool_calls[0]
    result["tool"] = {"name": call["name"], "input": call["args"]}


def tools(chat, result):
    take_call(chat.bind_tools([weather]).invoke(PROMPT), result)


def tools_stream(chat, result):
    whole = None
    for chunk in chat.bind_tools([weather]).stream(PROMPT):
        whole = chunk if whole is None else whole + chunk
    take_call(whole, result)


def parse(chat, result):
    result["object"] = chat.with_structured_output(Answer).invoke(PROMPT).model_dump()


def embed(model, result):
    # Without the tokenizer, which it would download.
    embeddings = OpenAIEmbeddings(model=model, check_embedding_ctx_length=False)
    result["embeddings"] = [embeddings.embed_query(PROMPT)]


def operation(make, ask):
    return lambda model, result: ask(make(model), result)


OPERATIONS = {
    f"{make.__name__}_{ask.__name__}": operation(make, ask)
    for make in [openai, responses, anthropic, google]
    for ask in [invoke, stream, tools, tools_stream, parse]
}

cases.run({**OPERATIONS, "openai_embed": embed}, lambda error: {})
