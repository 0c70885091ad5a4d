"""What an application does with the official Python SDK beside chat, unchanged; the results as JSON.

The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.
"""

import json

import cases
import openai
import pydantic

client = openai.OpenAI()
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city",
    "parameters": PARAMETERS,
    "strict": True,
}


class Answer(pydantic.BaseModel):
    answer: str


def take_call(answer, result):
    call = next(item for item in answer.output if item.type == "function_call")
    result.update(id=answer.id, finish=answer.status, tool={"name": call.name, "input": json.loads(call.arguments)})


def take_object(answer, result):
    result.update(id=answer.id, finish=answer.status, object=answer.output_parsed.model_dump())


def responses(model, result):
    answer = client.responses.create(model=model, input="grüß dich")
    result.update(id=answer.id, text=answer.output_text, finish=answer.status)


def responses_stream(model, result):
    for event in client.responses.create(model=model, input="grüß dich", stream=True):
        if event.type == "response.output_text.delta":
            result["text"] += event.delta
        elif event.type == "response.completed":
            result.update(id=event.response.id, finish=event.response.status)


def responses_helper(model, result):
    with client.responses.stream(model=model, input="grüß dich") as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                result["text"] += event.delta
        answer = stream.get_final_response()
        result.update(id=answer.id, finish=answer.status)


def responses_tools(model, result):
    take_call(client.responses.create(model=model, input="grüß dich", tools=[WEATHER]), result)


def responses_tools_stream(model, result):
    with client.responses.stream(model=model, input="grüß dich", tools=[WEATHER]) as stream:
        take_call(stream.get_final_response(), result)


def responses_parse(model, result):
    take_object(client.responses.parse(model=model, input="grüß dich", text_format=Answer), result)


def responses_parse_stream(model, result):
    with client.responses.stream(model=model, input="grüß dich", text_format=Answer) as stream:
        take_object(stream.get_final_response(), result)


def completions(model, result):
    answer = client.completions.create(model=model, prompt="once")
    result.update(id=answer.id, text=answer.choices[0].text, finish=answer.choices[0].finish_reason)


def completions_stream(model, result):
    for chunk in client.completions.create(model=model, prompt="once", stream=True):
        result["id"] = chunk.id
        for choice in chunk.choices:
            result["text"] += choice.text
            result["finish"] = choice.finish_reason or result["finish"]


def embeddings(model, result):
    answer = client.embeddings.create(model=model, input=["grüß dich"])
    result.update(text=answer.model, numbers=answer.data[0].embedding)


def moderations(model, result):
    answer = client.moderations.create(model=model, input="grüß dich")
    result.update(id=answer.id, text=answer.model, flagged=answer.results[0].flagged)


def images(model, result):
    result["text"] = client.images.generate(model=model, prompt="a sluice").data[0].b64_json


def images_stream(model, result):
    for event in client.images.generate(model=model, prompt="a sluice", stream=True, partial_images=2):
        if event.type == "image_generation.completed":
            result.update(text=event.b64_json, finish="completed")
        else:
            result["parts"] = result.get("parts", 0) + 1


def previous_response(model, result):
    client.responses.create(model=model, input="and then?", previous_response_id="resp_1")


def retrieve(model, result):
    client.responses.retrieve("resp_1")


OPERATIONS = {
    operation.__name__: operation
    for operation in [
        responses,
        responses_stream,
        responses_helper,
        responses_tools,
        responses_tools_stream,
        responses_parse,
        responses_parse_stream,
        completions,
        completions_stream,
        embeddings,
        moderations,
        images,
        images_stream,
        previous_response,
        retrieve,
    ]
}


def describe(error):
    return {"status": getattr(error, "status_code", None), "code": getattr(error, "code", None)}


cases.run(OPERATIONS, describe)
