"""What an application does with things that have an id, with the official Python SDK, unchanged; the results as JSON."""

import json
import os
import sys

import openai

MODEL = os.environ["MODEL"]


def responses(client, result):
    made = client.responses.create(model=MODEL, input="grüß dich", background=True, store=True)
    result.update(id=made.id, made=made.status)
    read = client.responses.retrieve(made.id)
    result.update(read=[read.id, read.status], text=read.output_text)
    with client.responses.retrieve(made.id, stream=True, starting_after=3) as stream:
        result["events"] = [event.type for event in stream]
    result["items"] = [item.id for item in client.responses.input_items.list(made.id)]
    following = client.responses.create(model=MODEL, input="and then?", previous_response_id=made.id)
    result["following"] = following.status
    result["cancelled"] = client.responses.cancel(made.id).status
    client.responses.delete(made.id)
    client.responses.retrieve(made.id)


def videos(client, result):
    made = client.videos.create(model=MODEL, prompt="a sluice", input_reference=("a.png", b"\x89PNG", "image/png"))
    result.update(id=made.id, made=made.status)
    polled = client.videos.poll(made.id, poll_interval_ms=10)
    result["read"] = [polled.id, polled.status]
    content = client.videos.download_content(made.id, variant="video").read()
    result["text"] = content.decode()
    result["following"] = client.videos.remix(made.id, prompt="a dog").status
    result["deleted"] = client.videos.delete(made.id).deleted
    client.videos.retrieve(made.id)


def submit(client, result):
    result["id"] = client.videos.create(model=MODEL, prompt="a sluice").id


THINGS = {"responses": responses, "videos": videos, "submit": submit}


def main():
    client = openai.OpenAI()
    results = {}
    for name in sys.argv[1].split(","):
        result = results[name] = {"error": None}
        try:
            THINGS[name](client, result)
        except Exception as error:
            result["error"] = {
                "class": type(error).__name__,
                "status": getattr(error, "status_code", None),
                "code": getattr(error, "code", None),
                "message": str(error),
            }
    print(json.dumps(results))


main()
