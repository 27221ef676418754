// A client of ACP v2, with the SDK that the protocol's makers publish: one turn with the agent that it starts.
//     node version_two_client.mjs SDK CWD PROMPT COMMAND…        prints what it was told, as one line of JSON
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [sdk, cwd, prompt, command, ...rest] = process.argv.slice(2);
const acp = await import(sdk);
const agent = spawn(command, rest, { cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const asked = [];
const app = acp.client({ name: "sdk" }).onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
  asked.push(params);
  const yes = params.options.find((each) => each.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId: yes.optionId } };
});
const found = await app.connectWith(stream, async (context) => {
  const info = { name: "sdk", version: "2.4.0" };
  const met = await context.request(acp.methods.agent.initialize, { protocolVersion: 2, info, capabilities: {} });
  const updates = [];
  const session = await context.buildSession({ cwd }).start();
  const answer = await session.prompt(prompt);
  for (let stop; !stop; ) {
    const next = await session.nextUpdate();
    stop = next.kind === "stop";
    updates.push(next.update ?? next);
  }
  return { version: met.protocolVersion, answer, updates, asked };
});
console.log(JSON.stringify(found));
agent.stdin.end();
