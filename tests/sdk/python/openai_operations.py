"""What an application does with the official Python SDK beside chat, unchanged; the results as JSON.

Runs the operations that are named and says of each what came and what was raised.
"""

import json
import os
import sys

import openai

MODEL = os.environ["MODEL"]


def responses(client, result):
    answer = client.responses.create(model=MODEL, input="grüß dich")
    result.update(id=answer.id, text=answer.output_text, finish=answer.status)


# What was received before an error stays in the result.
def responses_stream(client, result):
    for event in client.responses.create(model=MODEL, input="grüß dich", stream=True):
        if event.type == "response.output_text.delta":
            result["text"] += event.delta
        elif event.type == "response.completed":
            result.update(id=event.response.id, finish=event.response.status)


def responses_helper(client, result):
    with client.responses.stream(model=MODEL, input="grüß dich") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                result["text"] += event.delta
        answer = stream.get_final_response()
        result.update(id=answer.id, finish=answer.status)


def completions(client, result):
    answer = client.completions.create(model=MODEL, prompt="once")
    result.update(id=answer.id, text=answer.choices[0].text, finish=answer.choices[0].finish_reason)


def completions_stream(client, result):
    for chunk in client.completions.create(model=MODEL, prompt="once", stream=True):
        result["id"] = chunk.id
        for choice in chunk.choices:
            result["text"] += choice.text
            result["finish"] = choice.finish_reason or result["finish"]


def embeddings(client, result):
    answer = client.embeddings.create(model=MODEL, input=["grüß dich"])
    result.update(text=answer.model, numbers=answer.data[0].embedding)


def moderations(client, result):
    answer = client.moderations.create(model=MODEL, input="grüß dich")
    result.update(id=answer.id, text=answer.model, flagged=answer.results[0].flagged)


def images(client, result):
    result["text"] = client.images.generate(model=MODEL, prompt="a sluice").data[0].b64_json


def images_stream(client, result):
    for event in client.images.generate(model=MODEL, prompt="a sluice", stream=True, partial_images=2):
        if event.type == "image_generation.completed":
            result.update(text=event.b64_json, finish="completed")
        else:
            result["parts"] = result.get("parts", 0) + 1


def previous_response(client, result):
    client.responses.create(model=MODEL, input="and then?", previous_response_id="resp_1")


def background(client, result):
    client.responses.create(model=MODEL, input="grüß dich", background=True)


def retrieve(client, result):
    client.responses.retrieve("resp_1")


OPERATIONS = {
    operation.__name__: operation
    for operation in [
        responses,
        responses_stream,
        responses_helper,
        completions,
        completions_stream,
        embeddings,
        moderations,
        images,
        images_stream,
        previous_response,
        background,
        retrieve,
    ]
}


def main():
    client = openai.OpenAI()
    results = {}
    for name in sys.argv[1].split(","):
        result = results[name] = {"text": "", "finish": None, "error": None}
        try:
            OPERATIONS[name](client, result)
        except openai.OpenAIError as error:
            result["error"] = {
                "class": type(error).__name__,
                "status": getattr(error, "status_code", None),
                "code": getattr(error, "code", None),
                "message": str(error),
            }
    print(json.dumps(results))


main()
