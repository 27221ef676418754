/**
 * Markdown to nodes, never to HTML: what a model writes can't become markup of the page.
 *
 * text → blocks() → Block components. A block whose source is unchanged is not drawn again, so a streaming answer
 * costs its last block.
 */

import type { ComponentChildren, VNode } from "preact";
import { useSignal } from "@preact/signals";
import { Component } from "preact";

type Block =
  | { kind: "text"; source: string }
  | { kind: "heading"; level: number; source: string }
  | { kind: "code"; language: string; source: string }
  | { kind: "quote"; source: string }
  | { kind: "list"; ordered: boolean; start: number; items: string[]; source: string }
  | { kind: "table"; rows: string[][]; align: string[]; source: string }
  | { kind: "rule"; source: string };

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line: string): string[] =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replace(/\\\|/g, "|"));

const startsBlock = (line: string): boolean =>
  FENCE.test(line) || /^ {0,3}(#{1,6}\s|>)/.test(line) || ITEM.test(line) || /^ {0,3}([-*_])( *\1){2,}\s*$/.test(line);

/** PURE: the blocks of a text. An unfinished fence is code up to the end. */
export function blocks(text: string): Block[] {
  const lines = text.split("\n");
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const begin = at;
    const source = (): string => lines.slice(begin, at).join("\n");
    if (!line.trim()) {
      at++;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      const body: string[] = [];
      const mark = fence[2]!;
      at++;
      while (at < lines.length && !(lines[at]!.trim().startsWith(mark) && !lines[at]!.trim().slice(mark.length).trim().replace(/[`~]/g, ""))) {
        body.push(lines[at++]!.replace(new RegExp(`^ {0,${fence[1]!.length}}`), ""));
      }
      at++;
      found.push({ kind: "code", language: fence[3]!.trim().split(/\s/)[0] ?? "", source: body.join("\n") });
      continue;
    }
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(line);
    if (heading) {
      at++;
      found.push({ kind: "heading", level: heading[1]!.length, source: heading[2]! });
      continue;
    }
    if (/^ {0,3}([-*_])( *\1){2,}\s*$/.test(line)) {
      at++;
      found.push({ kind: "rule", source: line });
      continue;
    }
    if (/^ {0,3}>/.test(line)) {
      const body: string[] = [];
      while (at < lines.length && lines[at]!.trim() && (/^ {0,3}>/.test(lines[at]!) || !startsBlock(lines[at]!))) {
        body.push(lines[at++]!.replace(/^ {0,3}> ?/, ""));
      }
      found.push({ kind: "quote", source: body.join("\n") });
      continue;
    }
    const item = ITEM.exec(line);
    if (item) {
      const ordered = /\d/.test(item[2]!);
      const items: string[] = [];
      while (at < lines.length) {
        const next = ITEM.exec(lines[at]!);
        if (!next || /\d/.test(next[2]!) !== ordered) break;
        const indent = next[1]!.length + next[2]!.length + Math.min(next[3]!.length || 1, 4);
        const body = [next[4]!];
        at++;
        while (at < lines.length) {
          const more = lines[at]!;
          const depth = more.length - more.trimStart().length;
          if (!more.trim()) {
            const after = lines[at + 1] ?? "";
            if (!after.trim() || after.length - after.trimStart().length < Math.min(indent, 2)) break;
            body.push("");
          } else if (depth >= Math.min(indent, 2)) body.push(more.slice(Math.min(indent, depth)));
          else if (!startsBlock(more) && body.at(-1)) body.push(more.trim());
          else break;
          at++;
        }
        items.push(body.join("\n"));
        while (at < lines.length && !lines[at]!.trim() && ITEM.test(lines[at + 1] ?? "")) at++;
      }
      found.push({ kind: "list", ordered, start: parseInt(item[2]!, 10) || 1, items, source: source() });
      continue;
    }
    if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const align = cells(lines[at + 1]!).map((cell) =>
        cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left",
      );
      const rows = [cells(line)];
      at += 2;
      while (at < lines.length && lines[at]!.includes("|")) rows.push(cells(lines[at++]!));
      found.push({ kind: "table", rows, align, source: source() });
      continue;
    }
    at++;
    while (at < lines.length && lines[at]!.trim() && !startsBlock(lines[at]!)) at++;
    found.push({ kind: "text", source: source() });
  }
  return found;
}

const INLINE =
  /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|__(?=\S)([\s\S]*?\S)__(?!\w)|~~(?=\S)([\s\S]*?\S)~~|\*(?=[^\s*])([\s\S]*?[^\s*])\*(?!\*)|(?<!\w)_(?=[^\s_])([\s\S]*?[^\s_])_(?!\w)|!?\[([^\]\n]*)\]\(\s*<?((?:[^\s()<>]|\([^\s()<>]*\))+)>?(?:\s+"[^"]*")?\s*\)|(https?:\/\/[^\s<>()`"']*[^\s<>()`"'.,;:!?])|\\([\\`*_{}[\]()#+\-.!|~>])|( {2,}\n)/;

/** PURE: text with its inline marks. */
export function inline(text: string, depth = 0): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let rest = text;
  while (rest) {
    const match = depth < 6 ? INLINE.exec(rest) : null;
    if (!match) {
      out.push(rest);
      break;
    }
    if (match.index) out.push(rest.slice(0, match.index));
    const [whole, , code, bold, bold2, struck, italic, italic2, label, target, bare, escaped, broken] = match;
    if (code !== undefined) out.push(<code>{code.replace(/^ (.*\S.*) $/, "$1")}</code>);
    else if (bold !== undefined || bold2 !== undefined) out.push(<strong>{inline((bold ?? bold2)!, depth + 1)}</strong>);
    else if (struck !== undefined) out.push(<del>{inline(struck, depth + 1)}</del>);
    else if (italic !== undefined || italic2 !== undefined) out.push(<em>{inline((italic ?? italic2)!, depth + 1)}</em>);
    else if (target !== undefined) out.push(<Link to={target}>{inline(label || target, depth + 1)}</Link>);
    else if (bare !== undefined) out.push(<Link to={bare}>{bare}</Link>);
    else if (escaped !== undefined) out.push(escaped);
    else if (broken !== undefined) out.push(<br />);
    rest = rest.slice(match.index + whole!.length);
  }
  return out;
}

function Link({ to, children }: { to: string; children: ComponentChildren }): VNode {
  if (!/^(https?:|mailto:)/i.test(to)) return <span title={to}>{children}</span>;
  return (
    <a href={to} target="_blank" rel="noopener noreferrer" title={to}>
      {children}
    </a>
  );
}

function draw(block: Block): VNode {
  switch (block.kind) {
    case "code":
      return <CodeBlock text={block.source} language={block.language} />;
    case "heading": {
      const Tag = `h${Math.min(6, block.level + 2)}` as "h3";
      return <Tag>{inline(block.source)}</Tag>;
    }
    case "quote":
      return (
        <blockquote>
          <Markdown text={block.source} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((item, at) => <li key={at}>{listItem(item)}</li>);
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <div class="table" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>{block.rows[0]!.map((cell, at) => <th key={at} class={block.align[at] ?? "left"}>{inline(cell)}</th>)}</tr>
            </thead>
            <tbody>
              {block.rows.slice(1).map((row, line) => (
                <tr key={line}>{row.map((cell, at) => <td key={at} class={block.align[at] ?? "left"}>{inline(cell)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
    case "text":
      return <p>{inline(block.source)}</p>;
  }
}

function listItem(source: string): ComponentChildren {
  const box = /^\[([ xX])\]\s+/.exec(source);
  const text = box ? source.slice(box[0].length) : source;
  const inner = blocks(text);
  const first = inner[0];
  const body = first?.kind === "text" ? [inline(first.source), ...inner.slice(1).map(draw)] : inner.map(draw);
  return box ? [<span class="tick" aria-label={box[1] === " " ? "open" : "done"}>{box[1] === " " ? "☐" : "☑"}</span>, " ", ...body] : body;
}

/** Put a text into the clipboard. A page of `--lan` is not encrypted: there, browsers have only the old way. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const before = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
}

export function CopyButton({ text, class: more = "" }: { text: () => string; class?: string }): VNode {
  const said = useSignal("Copy");
  const press = async (): Promise<void> => {
    said.value = await copy(text()).then(
      () => "Copied",
      () => "Not copied",
    );
    setTimeout(() => (said.value = "Copy"), 2000);
  };
  return (
    <button class={`quiet ${more}`} type="button" onClick={() => void press()}>
      <span aria-live="polite">{said.value}</span>
    </button>
  );
}

export function CodeBlock({ text, language }: { text: string; language?: string }): VNode {
  return (
    <div class="code">
      {language ? <span class="language">{language}</span> : null}
      <pre tabIndex={0} role="group" aria-label={language ? `Code, ${language}` : "Code"}>
        <code>{text}</code>
      </pre>
      <CopyButton class="copy" text={() => text} />
    </div>
  );
}

class Drawn extends Component<{ block: Block }> {
  override shouldComponentUpdate(next: { block: Block }): boolean {
    return next.block.source !== this.props.block.source || next.block.kind !== this.props.block.kind;
  }

  override render(): VNode {
    return draw(this.props.block);
  }
}

export function Markdown({ text }: { text: string }): VNode {
  return (
    <div class="markdown">
      {blocks(text).map((block, at) => (
        <Drawn key={at} block={block} />
      ))}
    </div>
  );
}
