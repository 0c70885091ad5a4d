// Runs the cases that the command line names, one after the other, and prints what each came to as JSON.
// A case is an operation, or OPERATION=MODEL; without a model it is that of the environment.

import { createRequire } from "node:module";

// The SDKs are installed beside the other test tools, not beside this file.
export const load = createRequire(`${process.env.SLUICE_TEST_TOOLS}/node/package.json`);

// Operations take the model and the result to fill; an error is described for the result.
export async function run(operations, describe) {
  const results = {};
  for (const one of process.argv[2].split(",")) {
    const [name, model] = one.split("=");
    // What was received before an error stays in the result.
    const result = (results[one] = { text: "", finish: null, error: null });
    try {
      await operations[name](model ?? process.env.MODEL, result);
    } catch (error) {
      result.error = {
        class: error?.constructor?.name ?? "unknown",
        status: error?.status ?? null,
        message: String(error),
        ...describe(error),
      };
    }
  }
  console.log(JSON.stringify(results));
}
