"""What an application does with the official Python SDK, unchanged: one scenario, its result as JSON.

The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment; MODEL names the model.
"""

import json
import os
import sys

import openai

MESSAGES = [{"role": "user", "content": "grüß dich"}]


def whole(client):
    answer = client.chat.completions.create(model=os.environ["MODEL"], messages=MESSAGES)
    choice = answer.choices[0]
    return {"id": answer.id, "text": choice.message.content, "finish": choice.finish_reason}


def stream(client, result):
    # What was received before an error stays in the result.
    for chunk in client.chat.completions.create(model=os.environ["MODEL"], messages=MESSAGES, stream=True):
        result["id"] = chunk.id
        for choice in chunk.choices:
            result["text"] += choice.delta.content or ""
            result["finish"] = choice.finish_reason or result["finish"]


def models(client):
    return {"models": [model.id for model in client.models.list()]}


def main():
    result = {"text": "", "finish": None, "error": None}
    client = openai.OpenAI()
    try:
        match sys.argv[1]:
            case "whole":
                result.update(whole(client))
            case "stream":
                stream(client, result)
            case "models":
                result.update(models(client))
            case other:
                sys.exit(f"no scenario {other}")
    except openai.OpenAIError as error:
        result["error"] = {
            "class": type(error).__name__,
            "status": getattr(error, "status_code", None),
            "code": getattr(error, "code", None),
            "message": str(error),
        }
    print(json.dumps(result))


main()
