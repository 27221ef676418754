import "@xterm/xterm/css/xterm.css";
import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app";
import { connect } from "./connection";
import idle from "./icons/idle.svg";
import waiting from "./icons/waiting.svg";
import { allowStyles } from "./csp";
import { route } from "./routes";
import { screens } from "./screens";
import { pressing, receive, show, tasks } from "./store";
import { applyTheme } from "./theme";

allowStyles();
applyTheme();
effect(() => {
  const now = route.value;
  show(now.page === "task" && !now.replay ? now.task : null);
});
effect(() => {
  const now = route.value;
  const title = now.page === "task" ? tasks.value.get(now.task)?.title : undefined;
  const count = pressing.value.length;
  document.title = `${count ? `(${count}) ` : ""}${title ? `${title} · ` : ""}Tarmac`;
  document.querySelector<HTMLLinkElement>("link[rel=icon]")?.setAttribute("href", count ? waiting : idle);
});
void connect({ frame: receive, bytes: (frame) => screens.receive(frame) });
const page = document.getElementById("page")!;
page.replaceChildren(); // "Loading…"
render(<App />, page);
