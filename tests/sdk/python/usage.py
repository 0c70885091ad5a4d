"""What an application with the official Python SDK, unchanged, sees of what a stream used: without asking for it and
with. The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.
"""

import json

import openai

MESSAGES = [{"role": "user", "content": "grüß dich"}]


def stream(client, **options):
    result = {"text": "", "without_choices": 0, "usage": None}
    for chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True, **options):
        # Applications that never ask for usage take the first choice without a look.
        result["without_choices"] += not chunk.choices
        for choice in chunk.choices:
            result["text"] += choice.delta.content or ""
        if chunk.usage:
            result["usage"] = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens]
    return result


client = openai.OpenAI()
print(json.dumps({"plain": stream(client), "asking": stream(client, stream_options={"include_usage": True})}))
