"""What an application does with Google's own Python SDK, unchanged; the results as JSON.

GEMINI_BASE_URL says where, GEMINI_API_KEY who asks.
"""

import os

import cases
import pydantic
from google import genai
from google.genai import errors, types

client = genai.Client(http_options=types.HttpOptions(base_url=os.environ["GEMINI_BASE_URL"]))
PROMPT = "grüß dich"
CITY = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}, required=["city"])
WEATHER = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name="weather", description="The weather in a city", parameters=CITY)
    ]
)


class Answer(pydantic.BaseModel):
    answer: str


def take(response, result):
    result["id"] = response.response_id
    result["text"] += response.text or ""
    for candidate in response.candidates or []:
        if candidate.finish_reason:
            result["finish"] = candidate.finish_reason.value
    for call in response.function_calls or []:
        result["tool"] = {"name": call.name, "input": call.args}


def whole(model, result):
    take(client.models.generate_content(model=model, contents=PROMPT), result)


def stream(model, result):
    for chunk in client.models.generate_content_stream(model=model, contents=PROMPT):
        take(chunk, result)


def chat(model, result):
    for chunk in client.chats.create(model=model).send_message_stream(PROMPT):
        take(chunk, result)


def tools(model, result):
    config = types.GenerateContentConfig(tools=[WEATHER])
    take(client.models.generate_content(model=model, contents=PROMPT, config=config), result)


def tools_stream(model, result):
    config = types.GenerateContentConfig(tools=[WEATHER])
    for chunk in client.models.generate_content_stream(model=model, contents=PROMPT, config=config):
        take(chunk, result)


def agent(model, result):
    """The SDK calls the function itself and asks again with what it gave."""

    def weather(city: str) -> str:
        """The weather in a city."""
        result["called_with"] = city
        return "rain"

    config = types.GenerateContentConfig(tools=[weather])
    take(client.models.generate_content(model=model, contents=PROMPT, config=config), result)


def parse(model, result):
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Answer)
    response = client.models.generate_content(model=model, contents=PROMPT, config=config)
    take(response, result)
    result["object"] = response.parsed.model_dump()


def count(model, result):
    result["count"] = client.models.count_tokens(model=model, contents=PROMPT).total_tokens


def embed(model, result):
    embeddings = client.models.embed_content(model=model, contents=PROMPT).embeddings
    result["embeddings"] = [embedding.values for embedding in embeddings]


def models(model, result):
    result["models"] = [listed.name for listed in client.models.list()]
    result["one"] = client.models.get(model=model).name


def describe(error):
    # The other error that is the SDK's own is that of half an event.
    if not isinstance(error, errors.APIError):
        return {}
    details = error.details["error"]
    return {
        "status": error.code,
        "name": error.status,
        "code": details["details"][0]["reason"] if "details" in details else None,
        "message": error.message,
    }


OPERATIONS = [whole, stream, chat, tools, tools_stream, agent, parse, count, embed, models]
cases.run({operation.__name__: operation for operation in OPERATIONS}, describe)
