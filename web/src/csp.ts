/**
 * xterm.js styles what it draws in two ways that the page's content security policy refuses:
 *
 * - It inserts <style> elements. They are allowed with this response's nonce, which must be on them before.
 * - It sets `style` attributes of spans (24-bit colours, search matches). The same text set as a property is allowed.
 */
export function allowStyles(): void {
  const nonce = document.querySelector<HTMLElement>("meta[property=csp-nonce]")?.nonce ?? "";
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const made = create(name, options);
    if (made instanceof HTMLStyleElement) made.nonce = nonce;
    return made;
  }) as typeof document.createElement;

  HTMLSpanElement.prototype.setAttribute = function (name: string, value: string): void {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}
