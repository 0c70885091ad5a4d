// What an application does with things that have an id, with the official Node SDK, unchanged; the results as JSON.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const require = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`);
const { default: OpenAI, toFile } = require("openai");

const model = process.env.MODEL;

const things = {
  async responses(client, result) {
    const made = await client.responses.create({ model, input: "grüß dich", background: true, store: true });
    Object.assign(result, { id: made.id, made: made.status });
    const read = await client.responses.retrieve(made.id);
    Object.assign(result, { read: [read.id, read.status], text: read.output_text });
    result.events = [];
    for await (const event of await client.responses.retrieve(made.id, { stream: true, starting_after: 3 }))
      result.events.push(event.type);
    result.items = [];
    for await (const item of client.responses.inputItems.list(made.id)) result.items.push(item.id);
    const following = { model, input: "and then?", previous_response_id: made.id };
    result.following = (await client.responses.create(following)).status;
    result.cancelled = (await client.responses.cancel(made.id)).status;
    await client.responses.delete(made.id);
    await client.responses.retrieve(made.id);
  },

  async videos(client, result) {
    const reference = await toFile(Buffer.from("PNG"), "a.png", { type: "image/png" });
    const made = await client.videos.create({ model, prompt: "a sluice", input_reference: reference });
    Object.assign(result, { id: made.id, made: made.status });
    const polled = await client.videos.retrieve(made.id);
    result.read = [polled.id, polled.status];
    result.text = await (await client.videos.downloadContent(made.id, { variant: "video" })).text();
    result.following = (await client.videos.remix(made.id, { prompt: "a dog" })).status;
    result.deleted = (await client.videos.delete(made.id)).deleted;
    await client.videos.retrieve(made.id);
  },

  async submit(client, result) {
    result.id = (await client.videos.create({ model, prompt: "a sluice" })).id;
  },
};

const client = new OpenAI();
const results = {};
for (const name of process.argv[2].split(",")) {
  const result = (results[name] = { error: null });
  try {
    await things[name](client, result);
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
