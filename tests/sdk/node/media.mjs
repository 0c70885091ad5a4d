// What an application does with the official Node SDK for sound and pictures, unchanged; the results as JSON.
// Runs the operations that are named and says of each what came and what was raised.

import { createRequire } from "node:module";

// The SDK is installed beside the other test tools, not beside this file.
const sdk = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`)("openai");
const { default: OpenAI, toFile } = sdk;

const model = process.env.MODEL;
const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
// Every byte, and what could be taken for the end of a form.
const form = '--boundary\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n';
const recording = Buffer.concat([Buffer.from(`ID3\u0004\r\n\r\n${form}`), every]);
const picture = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), every]);
const file = (name, type, content) => toFile(content, name, { type });
const audio = (content = recording) => file("größe; name=model.mp3", "audio/mpeg", content);
const image = (name = "a.png") => file(name, "image/png", picture);
const said = { model, voice: "alloy", input: "grüß dich" };

async function upload(client, result, megabytes) {
  const content = Buffer.alloc(megabytes * 1_000_000, every.subarray(0, 250));
  result.text = (await client.audio.transcriptions.create({ model, file: await audio(content) })).text;
}

const operations = {
  async speech(client, result) {
    const answer = await client.audio.speech.create(said);
    result.hex = Buffer.from(await answer.arrayBuffer()).toString("hex");
  },

  // What was received before an error stays in the result.
  async speech_streamed(client, result) {
    const answer = await client.audio.speech.create(said);
    for await (const chunk of answer.body) result.hex = (result.hex ?? "") + Buffer.from(chunk).toString("hex");
  },

  async transcription(client, result) {
    result.text = (await client.audio.transcriptions.create({ model, file: await audio() })).text;
  },

  async transcription_words(client, result) {
    const asked = { model, file: await audio(), response_format: "vtt" };
    result.text = await client.audio.transcriptions.create(asked);
  },

  async transcription_stream(client, result) {
    const asked = { model, file: await audio(), stream: true };
    for await (const event of await client.audio.transcriptions.create(asked)) {
      if (event.type === "transcript.text.delta") result.text += event.delta;
      if (event.type === "transcript.text.done") Object.assign(result, { text: event.text, finish: "done" });
    }
  },

  async translation(client, result) {
    result.text = (await client.audio.translations.create({ model, file: await audio() })).text;
  },

  async edit(client, result) {
    const asked = { model, image: [await image(), await image("b.png")], prompt: "a sluice" };
    result.text = (await client.images.edit(asked)).data[0].b64_json;
  },

  async edit_stream(client, result) {
    const asked = { model, image: await image(), prompt: "a sluice", stream: true, partial_images: 2 };
    for await (const event of await client.images.edit(asked)) {
      if (event.type === "image_edit.completed") Object.assign(result, { text: event.b64_json, finish: "done" });
      else result.parts = (result.parts ?? 0) + 1;
    }
  },

  async variation(client, result) {
    result.text = (await client.images.createVariation({ model, image: await image() })).data[0].b64_json;
  },

  async upload(client, result) {
    await upload(client, result, 25);
  },

  async upload_too_large(client, result) {
    await upload(client, result, 34);
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
