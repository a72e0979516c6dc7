// The script of one agent: every kind of proposal, in an order that its seed determines.

import { createHash } from 'node:crypto';
import { below, pick, seeded } from './seeded.js';

export type Ask =
  | { readonly what: 'propose'; readonly payload: string; readonly inputId?: string; readonly again: boolean }
  | { readonly what: 'end' };

interface ScriptOptions {
  readonly seed: number;
  /** Part of every name and content, so that no two agents write the same. */
  readonly who: string;
  readonly steps: number;
  readonly remote: boolean;
}

export const script = (options: ScriptOptions): readonly Ask[] => new Author(options).write();

export const CASES = ['case-alpha', 'case-beta'] as const;
/** In every case sandbox from the start, and larger than what fits into the database as an artifact. */
export const LARGE_FILE = 'large.txt';

/** A proposal whose id is derived from `from`. */
export function proposalOf(from: string, action: string, args: object): string {
  const hex = createHash('sha256').update(from).digest('hex');
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  return JSON.stringify({ schema_version: '1.0.0', id, reasoning: 'The script says so.', action, args });
}

class Author {
  readonly #options: ScriptOptions;
  readonly #random: () => number;
  readonly #asks: Ask[] = [];
  readonly #files: string[] = [];
  #made = 0;

  constructor(options: ScriptOptions) {
    this.#options = options;
    this.#random = seeded(options.seed);
  }

  write(): readonly Ask[] {
    const { steps, remote } = this.#options;
    // The first steps are fixed, so that a short script has every kind of change.
    const first = [this.#create, this.#send, this.#rename, this.#makeFolder, this.#replace, this.#remove];
    for (let step = 0; step < steps; step += 1) {
      const next = first[step] ?? pick(this.#random, this.#kinds());
      next.call(this);
    }
    // Some remote agents finish; the others live on.
    const last = this.#random();
    if (last < (remote ? 0.2 : 0.4)) this.#propose('FINISH', { response: 'done' });
    else if (!remote && last < 0.7) this.#asks.push({ what: 'end' });
    return this.#asks;
  }

  #kinds(): readonly (() => void)[] {
    const changes = [
      this.#create,
      this.#create,
      this.#replace,
      this.#rename,
      this.#remove,
      this.#makeFolder,
      this.#send,
    ];
    return [...changes, this.#contend, this.#read, this.#list, this.#think, this.#refused, this.#repeat, this.#again];
  }

  #create(): void {
    const name = this.#name('.txt');
    this.#files.push(name);
    this.#propose('WRITE_FILE', { path: `/sandbox/${name}`, content: this.#content() });
  }

  #replace(): void {
    this.#propose('WRITE_FILE', { path: `/sandbox/${this.#file()}`, content: this.#content() });
  }

  /** Several agents write here: after a crash, the last writer may be unknown. */
  #contend(): void {
    this.#propose('WRITE_FILE', { path: '/sandbox/shared.md', content: this.#content() });
  }

  #send(): void {
    this.#propose('WRITE_FILE', { path: `/sandbox/outbox-${this.#name('.txt')}`, content: this.#content() });
  }

  #rename(): void {
    const source = this.#file();
    const destination = this.#name('.md');
    this.#files.splice(this.#files.indexOf(source), 1, destination);
    this.#propose('RENAME_FILE', { source: `/sandbox/${source}`, destination: `/sandbox/${destination}` });
  }

  #remove(): void {
    const path = this.#file();
    this.#files.splice(this.#files.indexOf(path), 1);
    this.#propose('DELETE_FILE', { path: `/sandbox/${path}` });
  }

  #makeFolder(): void {
    this.#propose('CREATE_DIRECTORY', { path: `/sandbox/${this.#name('')}` });
  }

  #read(): void {
    const path = pick(this.#random, [this.#file(), this.#file(), 'missing.txt', LARGE_FILE]);
    this.#propose('READ_FILE', { path: `/sandbox/${path}` });
  }

  #list(): void {
    this.#propose('LIST_FILES', { path: '/sandbox/' });
  }

  #think(): void {
    this.#propose('THINK', {});
  }

  #refused(): void {
    const kind = below(this.#random, 4);
    if (kind === 0) this.#propose('WRITE_FILE', { path: `/sandbox/${this.#name('.sh')}`, content: this.#content() });
    if (kind === 1) this.#propose('READ_FILE', { path: '/etc/passwd' });
    if (kind === 2) this.#propose('RUN_SHELL', {});
    if (kind === 3)
      this.#asks.push({ what: 'propose', payload: `{"not": "a proposal ${this.#name('')}"`, again: false });
  }

  /** The same proposal as a new request: its id is a duplicate. */
  #repeat(): void {
    const earlier = this.#earlier();
    if (earlier !== null) this.#asks.push({ what: 'propose', payload: earlier.payload, again: false });
  }

  /** The same request again: it gets the recorded response. */
  #again(): void {
    const earlier = this.#earlier();
    if (earlier?.inputId !== undefined) this.#asks.push({ ...earlier, again: true });
  }

  #earlier(): Extract<Ask, { what: 'propose' }> | null {
    const earlier = this.#asks.filter((ask) => ask.what === 'propose');
    return earlier.length === 0 ? null : pick(this.#random, earlier);
  }

  /** A file of this agent, which exists unless something went wrong. */
  #file(): string {
    if (this.#files.length === 0) this.#create();
    return pick(this.#random, this.#files);
  }

  #propose(action: string, args: Readonly<Record<string, string>>): void {
    const { who } = this.#options;
    this.#made += 1;
    const payload = proposalOf(`${who} ${this.#made}`, action, args);
    // Every third request has no client id, and so cannot be repeated.
    const inputId = this.#made % 3 === 0 ? {} : { inputId: `${who}-${this.#made}` };
    this.#asks.push({ what: 'propose', payload, ...inputId, again: false });
  }

  #name(ending: string): string {
    this.#made += 1;
    return `w${this.#options.who}-${this.#made}${ending}`;
  }

  #content(): string {
    const { who } = this.#options;
    return `${who} wrote ${this.#asks.length} ${'and went on '.repeat(below(this.#random, 400))}\n`;
  }
}
