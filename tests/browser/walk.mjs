// Walks through pages in a real browser, by keyboard alone, once for each view (theme and width), and prints as JSON what it
// saw at each stop. A step is one of
//   {"go": "/path"}          {"to": "name of a field, link or button"}   moves the focus there with the tabulator
//   {"write": "text"}        {"press": "Tab"}                            {"until": "text that the page shows"}
//   {"follow": "Enter"}      presses, and waits for the page that comes  {"see": "name of a stop"}
//
//   node walk.mjs '{"origin": …, "chromium": …, "shots": …, "views": […], "steps": […]}'
import { launch, listen, see } from "./seen.mjs";

const plan = JSON.parse(process.argv[2]);
const browser = await launch(plan.chromium);

/** So many stops of the tabulator are more than any page has. */
const STOPS_MAX = 400;

/** In the page: what the focus is on, as a person would call it. */
function readFocus() {
  const { activeElement: on } = document;
  const name = on.labels?.[0]?.innerText ?? on.getAttribute("aria-label") ?? on.innerText ?? "";
  return name.replace(/\s+/g, " ").trim();
}

async function moveTo(page, name) {
  const passed = [];
  for (let stop = 0; stop < STOPS_MAX; stop += 1) {
    await page.keyboard.press("Tab");
    const on = await page.evaluate(readFocus);
    if (on === name) return;
    passed.push(on);
  }
  throw new Error(`the tabulator never comes to "${name}" on ${page.url()}, but to ${JSON.stringify([...new Set(passed)])}`);
}

async function shown(page, text) {
  const has = (wanted) => document.body.innerText.includes(wanted);
  await page.waitForFunction(has, text).catch(async (error) => {
    throw new Error(`"${text}" never stands on ${page.url()}:\n${await page.evaluate(() => document.body.innerText)}`, { cause: error });
  });
}

async function walk({ theme, width }) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 }, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const { said, requests } = listen(page);
  const stops = [];
  for (const step of plan.steps) {
    if (step.go) await page.goto(plan.origin + step.go, { waitUntil: "load" });
    if (step.to) await moveTo(page, step.to);
    if (step.write) await page.keyboard.type(step.write);
    if (step.press) await page.keyboard.press(step.press);
    if (step.follow) await Promise.all([page.waitForEvent("load"), page.keyboard.press(step.follow)]);
    if (step.until) await shown(page, step.until);
    if (step.see) {
      const shot = `${plan.shots}-${step.see}-${theme}-${width}.png`;
      stops.push({ stop: step.see, theme, width, ...(await see(page, shot)), said: said.splice(0), requests: requests.splice(0) });
    }
  }
  await context.close();
  return stops;
}

try {
  const stops = [];
  for (const view of plan.views) stops.push(...(await walk(view)));
  console.log(JSON.stringify({ stops }));
} finally {
  await browser.close();
}
