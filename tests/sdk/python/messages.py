"""What an application does with the official Anthropic SDK for Python, unchanged; the results as JSON.

The SDK takes ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY from the environment.
"""

import anthropic
import cases
import pydantic

client = anthropic.Anthropic()
ASK = {"messages": [{"role": "user", "content": "grüß dich"}]}
WEATHER = {
    "name": "weather",
    "description": "The weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Answer(pydantic.BaseModel):
    answer: str


def take_call(message, result):
    call = next(block for block in message.content if block.type == "tool_use")
    result.update(id=message.id, finish=message.stop_reason, tool={"name": call.name, "input": call.input})


def take_object(message, result):
    result.update(id=message.id, finish=message.stop_reason, object=message.parsed_output.model_dump())


def whole(model, result):
    message = client.messages.create(**ASK, model=model, max_tokens=99)
    text = "".join(block.text for block in message.content)
    result.update(id=message.id, text=text, finish=message.stop_reason)


def stream(model, result):
    for event in client.messages.create(**ASK, model=model, max_tokens=99, stream=True):
        match event.type:
            case "message_start":
                result["id"] = event.message.id
            case "content_block_delta":
                result["text"] += event.delta.text
            case "message_delta":
                result["finish"] = event.delta.stop_reason


def helper(model, result):
    with client.messages.stream(**ASK, model=model, max_tokens=99) as events:
        for text in events.text_stream:
            result["text"] += text
        message = events.get_final_message()
    result.update(id=message.id, text=message.content[0].text, finish=message.stop_reason)


def tools(model, result):
    with client.messages.stream(**ASK, model=model, max_tokens=99, tools=[WEATHER]) as events:
        take_call(events.get_final_message(), result)


def tools_whole(model, result):
    take_call(client.messages.create(**ASK, model=model, max_tokens=99, tools=[WEATHER]), result)


def parse(model, result):
    take_object(client.messages.parse(**ASK, model=model, max_tokens=99, output_format=Answer), result)


def parse_stream(model, result):
    with client.messages.stream(**ASK, model=model, max_tokens=99, output_format=Answer) as events:
        take_object(events.get_final_message(), result)


def count(model, result):
    result["count"] = client.messages.count_tokens(**ASK, model=model).input_tokens


def models(model, result):
    result["models"] = [listed.id for listed in client.models.list()]


def describe(error):
    return {"status": getattr(error, "status_code", None), "kind": getattr(error, "type", None)}


OPERATIONS = [whole, stream, helper, tools, tools_whole, parse, parse_stream, count, models]
cases.run({operation.__name__: operation for operation in OPERATIONS}, describe)
