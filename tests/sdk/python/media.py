"""What an application does with the official Python SDK for sound and pictures, unchanged; the results as JSON.

Runs the operations that are named and says of each what came and what was raised.
"""

import json
import os
import sys

import openai

MODEL = os.environ["MODEL"]
# Every byte, and what could be taken for the end of a form.
RECORDING = b"ID3\x04\r\n\r\n--boundary\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n" + bytes(range(256))
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def speech(client, result):
    result["hex"] = client.audio.speech.create(model=MODEL, voice="alloy", input="grüß dich").read().hex()


# What was received before an error stays in the result.
def speech_streamed(client, result):
    asked = client.audio.speech.with_streaming_response.create(model=MODEL, voice="alloy", input="grüß dich")
    with asked as answer:
        for chunk in answer.iter_bytes():
            result["hex"] = result.get("hex", "") + chunk.hex()


def transcription(client, result):
    result["text"] = client.audio.transcriptions.create(model=MODEL, file=("größe; name=\"model\".mp3", RECORDING)).text


def transcription_words(client, result):
    answer = client.audio.transcriptions.create(model=MODEL, file=("a.mp3", RECORDING), response_format="vtt")
    result["text"] = answer


def transcription_stream(client, result):
    for event in client.audio.transcriptions.create(model=MODEL, file=("a.mp3", RECORDING), stream=True):
        if event.type == "transcript.text.delta":
            result["text"] += event.delta
        elif event.type == "transcript.text.done":
            result.update(text=event.text, finish="done")


def translation(client, result):
    result["text"] = client.audio.translations.create(model=MODEL, file=("a.mp3", RECORDING)).text


def edit(client, result):
    pictures = [("a.png", PICTURE), ("b.png", PICTURE)]
    result["text"] = client.images.edit(model=MODEL, image=pictures, prompt="a sluice").data[0].b64_json


def edit_stream(client, result):
    asked = client.images.edit(model=MODEL, image=("a.png", PICTURE), prompt="a sluice", stream=True, partial_images=2)
    for event in asked:
        if event.type == "image_edit.completed":
            result.update(text=event.b64_json, finish="done")
        else:
            result["parts"] = result.get("parts", 0) + 1


def variation(client, result):
    result["text"] = client.images.create_variation(model=MODEL, image=("a.png", PICTURE)).data[0].b64_json


def upload(client, result, megabytes=25):
    recording = bytes(range(250)) * (megabytes * 4000)
    result["text"] = client.audio.transcriptions.create(model=MODEL, file=("long.wav", recording)).text


def upload_too_large(client, result):
    upload(client, result, megabytes=34)


OPERATIONS = {
    operation.__name__: operation
    for operation in [
        speech,
        speech_streamed,
        transcription,
        transcription_words,
        transcription_stream,
        translation,
        edit,
        edit_stream,
        variation,
        upload,
        upload_too_large,
    ]
}


def main():
    client = openai.OpenAI()
    results = {}
    for name in sys.argv[1].split(","):
        result = results[name] = {"text": "", "finish": None, "error": None}
        try:
            OPERATIONS[name](client, result)
        except Exception as error:
            result["error"] = {
                "class": type(error).__name__,
                "status": getattr(error, "status_code", None),
                "code": getattr(error, "code", None),
                "message": str(error),
            }
    print(json.dumps(results))


main()
