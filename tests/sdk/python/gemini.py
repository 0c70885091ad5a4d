"""What an application does with Google's own Python SDK, unchanged: one scenario, its result as JSON.

GEMINI_BASE_URL says where, GEMINI_API_KEY who asks; MODEL names the model.
"""

import json
import os
import sys

from google import genai
from google.genai import errors, types

PROMPT = "grüß dich"


def take(response, result):
    result["id"] = response.response_id
    result["text"] += response.text or ""
    for candidate in response.candidates or []:
        if candidate.finish_reason:
            result["finish"] = candidate.finish_reason.value


def whole(client, model, result):
    take(client.models.generate_content(model=model, contents=PROMPT), result)


def stream(client, model, result):
    # What was received before an error stays in the result.
    for chunk in client.models.generate_content_stream(model=model, contents=PROMPT):
        take(chunk, result)


def count(client, model, result):
    result["tokens"] = client.models.count_tokens(model=model, contents=PROMPT).total_tokens


def embed(client, model, result):
    embeddings = client.models.embed_content(model=model, contents=PROMPT).embeddings
    result["embeddings"] = [embedding.values for embedding in embeddings]


def models(client, model, result):
    result["models"] = [listed.name for listed in client.models.list()]
    result["one"] = client.models.get(model=model).name


def main():
    result = {"text": "", "finish": None, "error": None}
    client = genai.Client(http_options=types.HttpOptions(base_url=os.environ["GEMINI_BASE_URL"]))
    scenarios = {"whole": whole, "stream": stream, "count": count, "embed": embed, "models": models}
    try:
        scenarios[sys.argv[1]](client, os.environ["MODEL"], result)
    except errors.APIError as error:
        details = error.details["error"]
        result["error"] = {
            "class": type(error).__name__,
            "status": error.code,
            "name": error.status,
            "code": details["details"][0]["reason"] if "details" in details else None,
            "message": error.message,
        }
    except errors.UnknownApiResponseError as error:
        # Half an event.
        result["error"] = {"class": type(error).__name__, "message": str(error)}
    print(json.dumps(result))


main()
