/**
 * Terminals as xterm.js draws them. A screen is kept while its terminal lives; only shown ones are watched.
 *
 * binary frame → write → drawn → ack. Bytes have absolute offsets: what was drawn is never drawn again.
 */

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal as Emulator, type ITheme } from "@xterm/xterm";
import { signal } from "@preact/signals";
import { call, link, send, sendSurely } from "./connection";
import { Bytes, type Terminal } from "./protocol";

const ACK_EVERY = 64 * 1024;
const RESET = "\x1bc";
const HEAD = 13; // kind u8, terminal u32, offset u64
const FONT = 13;
const SMALLEST = 8; // below it one scrolls to the side

const DARK: ITheme = {
  background: "#14171c",
  foreground: "#d6dae1",
  cursor: "#f0b849",
  cursorAccent: "#14171c",
  selectionBackground: "#3a4a63",
  black: "#3b414b",
  red: "#f47067",
  green: "#7bc47f",
  yellow: "#e5b567",
  blue: "#6cb0f2",
  magenta: "#c49bea",
  cyan: "#5fc4c0",
  white: "#c9ced6",
  brightBlack: "#7d8590",
  brightRed: "#ff938a",
  brightGreen: "#9bd89e",
  brightYellow: "#f2cd8a",
  brightBlue: "#93c8fb",
  brightMagenta: "#d8b9f4",
  brightCyan: "#86dbd7",
  brightWhite: "#f2f4f7",
};
const LIGHT: ITheme = {
  background: "#fbfbfa",
  foreground: "#23272e",
  cursor: "#9a6200",
  cursorAccent: "#fbfbfa",
  selectionBackground: "#c9dcf5",
  black: "#23272e",
  red: "#b42318",
  green: "#1f7a35",
  yellow: "#8a5a00",
  blue: "#1a5fb4",
  magenta: "#8131b8",
  cyan: "#0b6e6e",
  white: "#5f6670",
  brightBlack: "#6b727c",
  brightRed: "#c8372c",
  brightGreen: "#2b8a41",
  brightYellow: "#9a6a00",
  brightBlue: "#2f74c9",
  brightMagenta: "#9546cc",
  brightCyan: "#157f7f",
  brightWhite: "#3b424c",
};

function openLink(uri: string): void {
  if (/^https?:\/\//i.test(uri)) window.open(uri, "_blank", "noopener,noreferrer");
}

export class Screen {
  readonly element = document.createElement("div");
  readonly selection = signal("");
  readonly holding = signal(false); // this page has the keyboard
  readonly lostBy = signal<"" | "connection" | "somebody">(""); // how the keyboard was lost, until a key is typed again
  readonly unsent = signal(false); // keys that were typed then may be lost
  readonly matches = signal<{ index: number; count: number } | null>(null);
  readonly painted = signal(0); // counts the writes that were drawn
  private readonly emulator: Emulator;
  private readonly fit = new FitAddon();
  private readonly finder = new SearchAddon();
  private readonly watcher: ResizeObserver;
  private opened = false;
  private shown = false;
  private epoch = 0;
  private received = -1; // the offset up to which bytes were handed to the emulator; −1: none
  private asking = false; // a snapshot is on its way, because of a hole
  private drawn = 0;
  private acknowledged = 0;
  private selecting: ReturnType<typeof setTimeout> | undefined;
  private fitting = 0;
  private lines: { from: number; to: number } | null = null; // selected by keys

  constructor(
    readonly id: string,
    readonly number: number,
    private readonly live: boolean,
    size: { rows: number; columns: number } = { rows: 24, columns: 80 },
  ) {
    this.element.className = "screen";
    this.emulator = new Emulator({
      allowProposedApi: true,
      cols: size.columns, // opened with its size, it is measured and drawn once
      rows: size.rows,
      convertEol: false,
      cursorBlink: false,
      disableStdin: true,
      drawBoldTextInBrightColors: false,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: FONT,
      letterSpacing: 0,
      lineHeight: 1.2,
      linkHandler: { activate: (_, uri) => openLink(uri), allowNonHttpProtocols: false },
      minimumContrastRatio: 4.5,
      screenReaderMode: true,
      scrollback: 5000,
      theme: this.theme(),
    });
    this.emulator.loadAddon(this.fit);
    this.emulator.loadAddon(this.finder);
    this.emulator.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
    this.silence();
    this.emulator.onData((data) => this.type(data));
    this.emulator.onBinary((data) => this.type(data));
    this.emulator.onSelectionChange(() => {
      clearTimeout(this.selecting);
      this.selecting = setTimeout(() => this.select(this.emulator.getSelection()), 150);
    });
    this.finder.onDidChangeResults(({ resultIndex, resultCount }) => {
      this.matches.value = { index: resultIndex + 1, count: resultCount };
    });
    this.emulator.attachCustomKeyEventHandler((event) => this.key(event));
    this.watcher = new ResizeObserver(() => {
      cancelAnimationFrame(this.fitting);
      this.fitting = requestAnimationFrame(() => this.arrange());
    });
  }

  /** Tarmac answers the questions of programs. An answer of this emulator would be typed twice. */
  private silence(): void {
    const { parser } = this.emulator;
    for (const id of [
      { final: "c" },
      { prefix: ">", final: "c" },
      { prefix: "=", final: "c" },
      { final: "n" },
      { prefix: "?", final: "n" },
      { intermediates: "$", final: "p" },
      { prefix: "?", intermediates: "$", final: "p" },
      { prefix: ">", final: "q" },
      { prefix: "?", final: "u" },
      { final: "t" },
    ]) {
      parser.registerCsiHandler(id, () => true);
    }
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true);
    parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true);
    for (const colour of [4, 10, 11, 12]) parser.registerOscHandler(colour, (data) => data.includes("?"));
    parser.registerOscHandler(52, () => true); // a program must not write the clipboard
  }

  private theme(): ITheme {
    return getComputedStyle(document.documentElement).colorScheme === "dark" ? DARK : LIGHT;
  }

  recolour(): void {
    this.emulator.options.theme = this.theme();
  }

  /** Keys that stay with the page. */
  private key(event: KeyboardEvent): boolean {
    if (event.key === "F6") return false;
    if (event.ctrlKey && event.shiftKey && event.code === "KeyV") return false; // the browser pastes
    if (!this.holding.value && event.key === "Tab") return false; // the page's own order
    return true;
  }

  /** A key of somebody who reads: the arrows scroll, and with Shift they select lines. True: it was such a key. */
  read(event: KeyboardEvent): boolean {
    const { rows } = this.emulator;
    const far = { ArrowUp: -1, ArrowDown: 1, PageUp: 1 - rows, PageDown: rows - 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.ctrlKey && event.key.toLowerCase() === "a") this.emulator.selectAll();
    else if (event.key === "Escape" && this.emulator.hasSelection()) this.emulator.clearSelection();
    else if (far === undefined || event.ctrlKey || event.altKey) return false;
    else if (event.shiftKey) this.selectTo(far);
    else if (Number.isFinite(far)) this.emulator.scrollLines(far);
    else if (far < 0) this.emulator.scrollToTop();
    else this.emulator.scrollToBottom();
    return true;
  }

  /** Move the end of the selected lines; the first line is the one that was found, or the last one with text. */
  private selectTo(far: number): void {
    const { active } = this.emulator.buffer;
    const found = this.emulator.getSelectionPosition();
    const same = found?.start.x === 0 && found.start.y === Math.min(this.lines?.from ?? -1, this.lines?.to ?? -1);
    if (!this.lines || !same) {
      let last = active.viewportY + this.emulator.rows - 1;
      while (last > 0 && !active.getLine(last)?.translateToString(true)) last--;
      const first = found?.start.y ?? last;
      this.lines = { from: first, to: first };
    } else this.lines.to = Math.max(0, Math.min(active.length - 1, this.lines.to + far));
    const { from, to } = this.lines;
    this.emulator.selectLines(Math.min(from, to), Math.max(from, to));
    if (to < active.viewportY) this.emulator.scrollToLine(to);
    else if (to >= active.viewportY + this.emulator.rows) this.emulator.scrollToLine(to - this.emulator.rows + 1);
  }

  show(place: HTMLElement): void {
    place.append(this.element);
    this.shown = true;
    this.watch(); // first: the server prepares the picture while the emulator is opened
    if (!this.opened) {
      this.emulator.open(this.element);
      this.opened = true;
      const area = this.emulator.textarea;
      area?.setAttribute("aria-label", `Terminal ${this.id}`);
    }
    this.watcher.observe(place);
    this.arrange();
  }

  hide(): void {
    this.shown = false;
    this.watcher.disconnect();
    this.element.remove();
    if (this.live) send("unwatch", { terminal: this.id });
  }

  dispose(): void {
    this.hide();
    this.emulator.dispose();
  }

  watch(): void {
    if (!this.shown || !this.live) return;
    void call("watch", { terminal: this.id, from: this.received < 0 ? null : this.received }).catch(() => undefined);
    send("focus", { terminal: this.id });
  }

  disconnected(): void {
    this.asking = false;
    if (!this.holding.value) return;
    this.holding.value = false;
    this.lostBy.value = "connection";
    this.emulator.options.disableStdin = true;
  }

  // Bytes

  receive(kind: number, offset: number, payload: Uint8Array): void {
    switch (kind) {
      case Bytes.Snapshot: {
        const view = new DataView(payload.buffer, payload.byteOffset);
        this.asking = false;
        this.emulator.write(RESET); // after what is still to be drawn, not before it
        this.resizeLater(view.getUint16(0), view.getUint16(2));
        this.received = offset;
        this.acknowledged = offset - ACK_EVERY; // a snapshot is acknowledged, too
        this.write(payload.subarray(4), offset);
        break;
      }
      case Bytes.Data: {
        if (this.received < 0 || offset > this.received) {
          this.received = -1;
          if (!this.asking) this.watch(); // a hole: draw it anew
          this.asking = true;
          return;
        }
        const fresh = payload.subarray(this.received - offset);
        if (!fresh.length) return;
        this.received += fresh.length;
        this.write(fresh, this.received);
        break;
      }
      case Bytes.Resized: {
        const view = new DataView(payload.buffer, payload.byteOffset);
        this.resizeLater(view.getUint16(0), view.getUint16(2));
        break;
      }
    }
  }

  /** A new size counts from its place in the stream on. */
  resizeLater(rows: number, columns: number): void {
    this.emulator.write("", () => this.resized(rows, columns));
  }

  private write(data: Uint8Array, end: number): void {
    this.emulator.write(data, () => {
      this.drawn = end;
      this.painted.value++;
      if (this.drawn - this.acknowledged < ACK_EVERY) return;
      this.acknowledged = this.drawn;
      send("ack", { terminal: this.id, offset: this.drawn });
    });
  }

  /** Draw a stored piece of a tape (a replay). */
  draw(data: Uint8Array, done?: () => void): void {
    this.emulator.write(data, done);
  }

  clear(rows: number, columns: number): void {
    this.emulator.write(RESET); // after what is still to be drawn, not before it
    this.resizeLater(rows, columns);
  }

  // Size: the holder of the keyboard decides it. Everybody else fits it in by a smaller font.

  private resized(rows: number, columns: number): void {
    if (rows && columns && (rows !== this.emulator.rows || columns !== this.emulator.cols)) {
      this.emulator.resize(columns, rows);
    }
    this.arrange();
  }

  private arrange(): void {
    const place = this.element.parentElement;
    if (!place || !this.opened || !place.clientWidth) return;
    if (this.holding.value) {
      this.setFont(FONT);
      const wanted = this.fit.proposeDimensions();
      if (!wanted || !wanted.cols || !wanted.rows) return;
      const rows = Math.max(4, wanted.rows);
      const columns = Math.max(20, wanted.cols);
      if (rows !== this.emulator.rows || columns !== this.emulator.cols) {
        call("resize", { terminal: this.id, epoch: this.epoch, rows, columns }).catch(() => this.letterbox(place));
      }
      return;
    }
    this.letterbox(place);
  }

  private letterbox(place: HTMLElement): void {
    const drawn = this.element.querySelector<HTMLElement>(".xterm-screen");
    if (!drawn?.clientWidth) return;
    const now = this.emulator.options.fontSize ?? FONT;
    const style = getComputedStyle(this.element);
    const room = place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 14;
    const wanted = Math.floor(((now * room) / drawn.clientWidth) * 2) / 2;
    const size = Math.max(SMALLEST, Math.min(FONT, wanted));
    this.setFont(size);
  }

  /** xterm.js keeps the place in pixels of the old rows: without this, the next scroll jumps. */
  private setFont(size: number): void {
    if (size === this.emulator.options.fontSize) return;
    this.emulator.options.fontSize = size;
    const { viewportY, length } = this.emulator.buffer.active;
    if (!viewportY) return;
    this.emulator.scrollLines(-2 * length);
    this.emulator.scrollLines(viewportY);
  }

  // Keyboard

  async take(): Promise<void> {
    const { epoch } = await call("take", { terminal: this.id });
    this.epoch = Number(epoch);
    this.holding.value = true;
    this.emulator.options.disableStdin = false;
    this.arrange();
    this.emulator.focus();
  }

  async give(): Promise<void> {
    const epoch = this.epoch;
    this.release();
    await call("give", { terminal: this.id, epoch });
  }

  /** Another page took the keyboard. */
  taken(epoch: number): void {
    if (epoch < this.epoch || !this.holding.value) return;
    this.lostBy.value = "somebody";
    this.release();
  }

  private release(): void {
    this.holding.value = false;
    this.emulator.options.disableStdin = true;
    this.arrange();
  }

  /** Keys of the person. They are sent once: later they could reach another prompt than the one they were typed at. */
  type(data: string): void {
    if (!this.holding.value) return;
    this.lostBy.value = "";
    this.unsent.value = false;
    sendSurely("input", { terminal: this.id, epoch: this.epoch, data }, () => (this.unsent.value = true));
  }

  focus(): void {
    this.emulator.focus();
  }

  scrollToEnd(): void {
    this.emulator.scrollToBottom();
  }

  // Selection and search

  private select(text: string): void {
    if (text === this.selection.peek()) return;
    this.selection.value = text;
    if (this.live) send("select", { terminal: this.id, text: text.slice(0, 20_000) });
  }

  /** The text that is selected now. */
  selected(): string {
    return this.emulator.getSelection();
  }

  find(text: string, back = false): void {
    const look = {
      decorations: {
        matchBackground: "#6b5a1e",
        matchOverviewRuler: "#d9a514",
        activeMatchBackground: "#b07d00",
        activeMatchColorOverviewRuler: "#ff9500",
      },
    };
    if (!text) {
      this.finder.clearDecorations();
      this.matches.value = null;
    } else if (back) this.finder.findPrevious(text, look);
    else this.finder.findNext(text, look);
  }

  /** The text on the screen and above it. */
  text(): string {
    const { active } = this.emulator.buffer;
    const lines: string[] = [];
    for (let at = 0; at < active.length; at++) lines.push(active.getLine(at)?.translateToString(true) ?? "");
    return lines.join("\n").trimEnd();
  }
}

class Screens {
  private readonly open = new Map<string, Screen>();

  of({ id, number, rows, columns }: Terminal): Screen {
    let screen = this.open.get(id);
    if (!screen) this.open.set(id, (screen = new Screen(id, number, true, { rows, columns })));
    return screen;
  }

  receive(frame: DataView): void {
    const number = frame.getUint32(1);
    const offset = Number(frame.getBigUint64(5));
    const payload = new Uint8Array(frame.buffer, frame.byteOffset + HEAD);
    for (const screen of this.open.values()) {
      if (screen.number === number) screen.receive(frame.getUint8(0), offset, payload);
    }
  }

  disconnected(): void {
    for (const screen of this.open.values()) screen.disconnected();
  }

  reconnected(): void {
    for (const screen of this.open.values()) screen.watch();
  }

  taken(id: string, epoch: number): void {
    this.open.get(id)?.taken(epoch);
  }

  gone(id: string): void {
    const screen = this.open.get(id);
    this.open.delete(id);
    screen?.dispose();
  }

  forget(): void {
    for (const id of [...this.open.keys()]) this.gone(id);
  }

  recolour(): void {
    for (const screen of this.open.values()) screen.recolour();
  }
}

export const screens = new Screens();
link.subscribe((state) => void (state === "offline" && screens.disconnected()));
