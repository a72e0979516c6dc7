// Parses server-sent events from a stream of text, as the HTML standard defines. The page reads the stream with fetch,
// because EventSource cannot send the token in a header.

export interface SseMessage {
  readonly event: string;
  readonly data: string;
  /** The last id received; the next request continues after it. */
  readonly id: string | null;
}

export class SseParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #id: string | null = null;
  #begun = false;
  /** Milliseconds that the server asks to wait before the next attempt. */
  retry: number | null = null;

  /** The messages that this piece of the stream completes. */
  push(piece: string): readonly SseMessage[] {
    let text = this.#rest + piece;
    if (!this.#begun && text !== '') {
      this.#begun = true;
      if (text.startsWith('\ufeff')) text = text.slice(1);
    }
    const found: SseMessage[] = [];
    let from = 0;
    for (;;) {
      const [end, next] = lineEnd(text, from);
      if (end < 0) break;
      const message = this.#line(text.slice(from, end));
      if (message !== null) found.push(message);
      from = next;
    }
    this.#rest = text.slice(from);
    return found;
  }

  #line(line: string): SseMessage | null {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.#event = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d{1,7}$/.test(value)) this.retry = Number(value);
    return null;
  }

  #dispatch(): SseMessage | null {
    const [event, data] = [this.#event, this.#data];
    this.#event = '';
    this.#data = [];
    return data.length === 0 ? null : { event: event || 'message', data: data.join('\n'), id: this.#id };
  }
}

/** The end of the next line and the start of the one after it. A CR at the very end may be half of a CR LF. */
function lineEnd(text: string, from: number): readonly [end: number, next: number] {
  const lf = text.indexOf('\n', from);
  const cr = text.indexOf('\r', from);
  if (cr < 0 || (lf >= 0 && lf < cr)) return [lf, lf + 1];
  if (cr === text.length - 1) return [-1, -1];
  return [cr, text[cr + 1] === '\n' ? cr + 2 : cr + 1];
}
