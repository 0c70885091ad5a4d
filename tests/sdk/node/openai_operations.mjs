// What an application does with the official Node SDK beside chat, unchanged; the results as JSON.
// The SDK takes OPENAI_BASE_URL and OPENAI_API_KEY from the environment.

import { load, run } from "./cases.mjs";

const { default: OpenAI } = load("openai");
const { zodResponsesFunction, zodTextFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const client = new OpenAI();
const tools = [zodResponsesFunction({ name: "weather", parameters: z.object({ city: z.string() }) })];
const text = { format: zodTextFormat(z.object({ answer: z.string() }), "answer") };

function takeCall(answer, result) {
  const { name, arguments: sent } = answer.output.find((item) => item.type === "function_call");
  Object.assign(result, { id: answer.id, finish: answer.status, tool: { name, input: JSON.parse(sent) } });
}

function takeObject(answer, result) {
  Object.assign(result, { id: answer.id, finish: answer.status, object: answer.output_parsed });
}

const operations = {
  async responses(model, result) {
    const answer = await client.responses.create({ model, input: "grüß dich" });
    Object.assign(result, { id: answer.id, text: answer.output_text, finish: answer.status });
  },

  async responses_stream(model, result) {
    for await (const event of await client.responses.create({ model, input: "grüß dich", stream: true })) {
      if (event.type === "response.output_text.delta") result.text += event.delta;
      if (event.type === "response.completed")
        Object.assign(result, { id: event.response.id, finish: event.response.status });
    }
  },

  async responses_helper(model, result) {
    const stream = client.responses.stream({ model, input: "grüß dich" });
    stream.on("response.output_text.delta", (event) => (result.text += event.delta));
    const answer = await stream.finalResponse();
    Object.assign(result, { id: answer.id, finish: answer.status });
  },

  async responses_tools(model, result) {
    takeCall(await client.responses.create({ model, input: "grüß dich", tools }), result);
  },

  async responses_tools_stream(model, result) {
    takeCall(await client.responses.stream({ model, input: "grüß dich", tools }).finalResponse(), result);
  },

  async responses_parse(model, result) {
    takeObject(await client.responses.parse({ model, input: "grüß dich", text }), result);
  },

  async responses_parse_stream(model, result) {
    takeObject(await client.responses.stream({ model, input: "grüß dich", text }).finalResponse(), result);
  },

  async completions(model, result) {
    const answer = await client.completions.create({ model, prompt: "once" });
    const choice = answer.choices[0];
    Object.assign(result, { id: answer.id, text: choice.text, finish: choice.finish_reason });
  },

  async completions_stream(model, result) {
    for await (const chunk of await client.completions.create({ model, prompt: "once", stream: true })) {
      result.id = chunk.id;
      for (const choice of chunk.choices) {
        result.text += choice.text;
        result.finish = choice.finish_reason ?? result.finish;
      }
    }
  },

  async embeddings(model, result) {
    const answer = await client.embeddings.create({ model, input: ["grüß dich"], encoding_format: "float" });
    Object.assign(result, { text: answer.model, numbers: answer.data[0].embedding });
  },

  async moderations(model, result) {
    const answer = await client.moderations.create({ model, input: "grüß dich" });
    Object.assign(result, { id: answer.id, text: answer.model, flagged: answer.results[0].flagged });
  },

  async images(model, result) {
    const answer = await client.images.generate({ model, prompt: "a sluice" });
    result.text = answer.data[0].b64_json;
  },

  async images_stream(model, result) {
    const asked = { model, prompt: "a sluice", stream: true, partial_images: 2 };
    for await (const event of await client.images.generate(asked)) {
      if (event.type === "image_generation.completed")
        Object.assign(result, { text: event.b64_json, finish: "completed" });
      else result.parts = (result.parts ?? 0) + 1;
    }
  },

  async previous_response(model) {
    await client.responses.create({ model, input: "and then?", previous_response_id: "resp_1" });
  },

  async retrieve(model) {
    await client.responses.retrieve("resp_1");
  },
};

await run(operations, (error) => ({ code: error?.code ?? null }));
