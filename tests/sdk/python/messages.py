"""What an application does with the official Anthropic SDK for Python, unchanged: one scenario, its result as JSON.

The SDK takes ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY from the environment; MODEL names the model.
"""

import json
import os
import sys

import anthropic

ASK = {"model": os.environ["MODEL"], "messages": [{"role": "user", "content": "grüß dich"}]}
WEATHER = {
    "name": "weather",
    "description": "The weather in a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def whole(client, result):
    message = client.messages.create(**ASK, max_tokens=99)
    text = "".join(block.text for block in message.content)
    result.update(id=message.id, text=text, finish=message.stop_reason)


# What was received before an error stays in the result.
def stream(client, result):
    for event in client.messages.create(**ASK, max_tokens=99, stream=True):
        match event.type:
            case "message_start":
                result["id"] = event.message.id
            case "content_block_delta":
                result["text"] += event.delta.text
            case "message_delta":
                result["finish"] = event.delta.stop_reason


def helper(client, result):
    with client.messages.stream(**ASK, max_tokens=99) as events:
        for text in events.text_stream:
            result["text"] += text
        message = events.get_final_message()
    result.update(id=message.id, text=message.content[0].text, finish=message.stop_reason)


def tools(client, result):
    with client.messages.stream(**ASK, max_tokens=99, tools=[WEATHER]) as events:
        message = events.get_final_message()
    call = message.content[0]
    result.update(finish=message.stop_reason, tool={"name": call.name, "input": call.input})


def count(client, result):
    result["count"] = client.messages.count_tokens(**ASK).input_tokens


def models(client, result):
    result["models"] = [model.id for model in client.models.list()]


SCENARIOS = {f.__name__: f for f in (whole, stream, helper, tools, count, models)}


def main():
    result = {"text": "", "finish": None, "error": None}
    try:
        SCENARIOS[sys.argv[1]](anthropic.Anthropic(), result)
    except anthropic.AnthropicError as error:
        result["error"] = {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "kind": getattr(error, "type", None),
            "message": str(error),
        }
    print(json.dumps(result))


main()
