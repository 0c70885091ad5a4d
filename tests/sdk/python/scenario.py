"""What an application does with chat completions of the official Python SDK, unchanged; the results as JSON.

The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.
"""

import json

import cases
import openai
import pydantic

client = openai.OpenAI()
MESSAGES = [{"role": "user", "content": "grüß dich"}]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather in a city", "parameters": PARAMETERS, "strict": True},
}


class Answer(pydantic.BaseModel):
    answer: str


def take_call(message, result):
    call = message.tool_calls[0].function
    result["tool"] = {"name": call.name, "input": json.loads(call.arguments)}


def whole(model, result):
    answer = client.chat.completions.create(model=model, messages=MESSAGES)
    choice = answer.choices[0]
    result.update(id=answer.id, text=choice.message.content, finish=choice.finish_reason)


def stream(model, result):
    for chunk in client.chat.completions.create(model=model, messages=MESSAGES, stream=True):
        result["id"] = chunk.id
        for choice in chunk.choices:
            result["text"] += choice.delta.content or ""
            result["finish"] = choice.finish_reason or result["finish"]


def helper(model, result):
    with client.chat.completions.stream(model=model, messages=MESSAGES) as events:
        for event in events:
            if event.type == "content.delta":
                result["text"] += event.delta
        answer = events.get_final_completion()
    result.update(id=answer.id, finish=answer.choices[0].finish_reason)


def tools(model, result):
    answer = client.chat.completions.create(model=model, messages=MESSAGES, tools=[WEATHER])
    result.update(id=answer.id, finish=answer.choices[0].finish_reason)
    take_call(answer.choices[0].message, result)


def tools_stream(model, result):
    with client.chat.completions.stream(model=model, messages=MESSAGES, tools=[WEATHER]) as events:
        answer = events.get_final_completion()
    result.update(id=answer.id, finish=answer.choices[0].finish_reason)
    take_call(answer.choices[0].message, result)


def parse(model, result):
    answer = client.chat.completions.parse(model=model, messages=MESSAGES, response_format=Answer)
    choice = answer.choices[0]
    result.update(id=answer.id, object=choice.message.parsed.model_dump(), finish=choice.finish_reason)


def parse_stream(model, result):
    with client.chat.completions.stream(model=model, messages=MESSAGES, response_format=Answer) as events:
        answer = events.get_final_completion()
    choice = answer.choices[0]
    result.update(id=answer.id, object=choice.message.parsed.model_dump(), finish=choice.finish_reason)


def models(model, result):
    result["models"] = [listed.id for listed in client.models.list()]


def describe(error):
    return {"status": getattr(error, "status_code", None), "code": getattr(error, "code", None)}


OPERATIONS = [whole, stream, helper, tools, tools_stream, parse, parse_stream, models]
cases.run({operation.__name__: operation for operation in OPERATIONS}, describe)
