// What an application does with the official Node SDK beside chat, unchanged; the results as JSON.
// Runs the operations that are named and says of each what came and what was raised.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const { default: OpenAI } = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("openai");

const model = process.env.MODEL;

const operations = {
  async responses(client, result) {
    const answer = await client.responses.create({ model, input: "grüß dich" });
    Object.assign(result, { id: answer.id, text: answer.output_text, finish: answer.status });
  },

  // What was received before an error stays in the result.
  async responses_stream(client, result) {
    for await (const event of await client.responses.create({ model, input: "grüß dich", stream: true })) {
      if (event.type === "response.output_text.delta") result.text += event.delta;
      if (event.type === "response.completed")
        Object.assign(result, { id: event.response.id, finish: event.response.status });
    }
  },

  async responses_helper(client, result) {
    const stream = client.responses.stream({ model, input: "grüß dich" });
    stream.on("response.output_text.delta", (event) => (result.text += event.delta));
    const answer = await stream.finalResponse();
    Object.assign(result, { id: answer.id, finish: answer.status });
  },

  async completions(client, result) {
    const answer = await client.completions.create({ model, prompt: "once" });
    const choice = answer.choices[0];
    Object.assign(result, { id: answer.id, text: choice.text, finish: choice.finish_reason });
  },

  async completions_stream(client, result) {
    for await (const chunk of await client.completions.create({ model, prompt: "once", stream: true })) {
      result.id = chunk.id;
      for (const choice of chunk.choices) {
        result.text += choice.text;
        result.finish = choice.finish_reason ?? result.finish;
      }
    }
  },

  async embeddings(client, result) {
    const answer = await client.embeddings.create({ model, input: ["grüß dich"], encoding_format: "float" });
    Object.assign(result, { text: answer.model, numbers: answer.data[0].embedding });
  },

  async moderations(client, result) {
    const answer = await client.moderations.create({ model, input: "grüß dich" });
    Object.assign(result, { id: answer.id, text: answer.model, flagged: answer.results[0].flagged });
  },

  async images(client, result) {
    const answer = await client.images.generate({ model, prompt: "a sluice" });
    result.text = answer.data[0].b64_json;
  },

  async images_stream(client, result) {
    const asked = { model, prompt: "a sluice", stream: true, partial_images: 2 };
    for await (const event of await client.images.generate(asked)) {
      if (event.type === "image_generation.completed")
        Object.assign(result, { text: event.b64_json, finish: "completed" });
      else result.parts = (result.parts ?? 0) + 1;
    }
  },

  async previous_response(client) {
    await client.responses.create({ model, input: "and then?", previous_response_id: "resp_1" });
  },

  async background(client) {
    await client.responses.create({ model, input: "grüß dich", background: true });
  },

  async retrieve(client) {
    await client.responses.retrieve("resp_1");
  },
};

const client = new OpenAI();
const results = {};
for (const name of process.argv[2].split(",")) {
  const result = (results[name] = { text: "", finish: null, error: null });
  try {
    await operations[name](client, result);
  } catch (error) {
    result.error = {
      class: error?.constructor?.name ?? "unknown",
      status: error?.status ?? null,
      code: error?.code ?? null,
      message: String(error),
    };
  }
}
console.log(JSON.stringify(results));
