// Opens a page, says "open" when it stands, and waits until it shows a text, without loading it again. Prints what it
// saw as JSON: what it was told on the console, how often the page itself was loaded, what has the focus.
//
//   node watch.mjs '{"url": …, "chromium": …, "shot": …, "focus": "nodes-box", "until": "1 served"}'
import { createRequire } from "node:module";
import { join } from "node:path";

const tools = createRequire(join(process.env.SLUICE_TEST_TOOLS, "browser", "package.json"));
const { chromium } = tools("playwright-core");

const plan = JSON.parse(process.argv[2]);
const browser = await chromium.launch({
  executablePath: plan.chromium,
  args: ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  let loads = 0;
  page.on("console", (message) => said.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.push(`uncaught: ${error.message}`));
  page.on("load", () => (loads += 1));
  await page.goto(plan.url, { waitUntil: "load" });
  // The script says so as soon as it listens.
  await page.waitForFunction(() => document.getElementById("live").textContent === "This page updates itself.");
  await page.focus(`#${plan.focus}`);
  console.log("open");
  await page.waitForFunction((text) => document.body.innerText.includes(text), plan.until, { timeout: 40_000 });
  await page.screenshot({ path: plan.shot, fullPage: true });
  const focus = await page.evaluate(() => document.activeElement.id);
  console.log(JSON.stringify({ said: [...said], loads, focus }));
} finally {
  await browser.close();
}
