// Follows a tutorial or a how-to guide as a reader would: writes its files, runs its commands, compares their output.

import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../../fixtures/free-port.js';
import { installedPackage } from '../../fixtures/installed-package.js';
import { tempFolder } from '../../fixtures/temp-folder.js';
import { ROOT, textOf } from '../../sources.js';
import { blocksOf, INTERRUPT, type Command, type ConsoleBlock, type EditBlock } from './blocks.js';
import { StandIns } from './stand-ins.js';
import { Terminal } from './terminal.js';

/** Instead of the published package, its archive is installed, once for all pages. */
const INSTALL = /^npm install turnpike\b(.*)$/;
/** How pages name the folder in which their reader works. */
const FOLDER = '/home/you/turnpike';
const PORT = /(?:--port |127\.0\.0\.1:|localhost:)(\d{4,5})\b/g;
const WRITES = process.env['TURNPIKE_WRITE_PAGES'] === '1';

export class PageError extends Error {
  override readonly name = 'PageError';
}

/** A folder in which the packed package is installed; the folders of pages are in it. */
export async function installPackage(others: readonly string[] = []): Promise<string> {
  const folder = tempFolder('pages');
  symlinkSync(join(await installedPackage(others), 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Puts the stand-in for Claude Code where `npm install -g` would put the program. */
export function addClaude(packageFolder: string): void {
  const modules = join(packageFolder, 'node_modules');
  const own = join(modules, '@anthropic-ai/claude-code');
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'package.json'), '{ "name": "@anthropic-ai/claude-code", "version": "2.1.330" }');
  copyFileSync(join(ROOT, 'test/docs/pages/claude-stand-in.mjs'), join(own, 'cli.mjs'));
  chmodSync(join(own, 'cli.mjs'), 0o755);
  rmSync(join(modules, '.bin/claude'), { force: true });
  symlinkSync('../@anthropic-ai/claude-code/cli.mjs', join(modules, '.bin/claude'));
}

/**
 * Follows a page of the documentation in a new folder. With TURNPIKE_WRITE_PAGES=1, writes its outputs, and replaces
 * `@run2` in a command by the second id that begins with `run_`; `@hash1` by the first SHA-256.
 */
export async function followFile(path: string, packageFolder: string): Promise<void> {
  const folder = join(packageFolder, path.replace(/\W/g, '-'));
  mkdirSync(folder);
  await followPage(textOf(path), { folder, packageFolder, write: writerOf(path) });
}

/** Not in a checkout, or made there. */
const LEFT_OUT = ['.git', 'build', 'coverage', 'dist', 'node_modules'];

/** Follows a guide for those who change the source code, in a copy of this checkout. */
export async function followSourceGuide(path: string): Promise<void> {
  const folder = tempFolder('checkout');
  for (const name of readdirSync(ROOT)) {
    if (!LEFT_OUT.includes(name)) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  try {
    await followPage(textOf(path), { folder, packageFolder: folder, write: writerOf(path) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const writerOf = (path: string): ((page: string) => void) | null =>
  WRITES ? (page) => writeFileSync(join(ROOT, path), page) : null;

export interface PageOptions {
  readonly folder: string;
  readonly packageFolder: string;
  /** Takes the page with the outputs of this run; without it, another output is an error. */
  readonly write?: ((page: string) => void) | null;
}

/** Follows a page in a folder. */
export async function followPage(page: string, options: PageOptions): Promise<void> {
  const reader = new Reader(page, options);
  try {
    await reader.follow();
  } finally {
    await reader.close();
    options.write?.(reader.corrected());
  }
}

class Reader {
  readonly page: string;
  readonly options: PageOptions;
  readonly #standIns = new StandIns();
  readonly #terminals = new Map<string, Terminal>();
  /** Files of the reader are not in the project. */
  readonly #userHome = tempFolder('user');
  #seen = '';
  #page: string;
  readonly #corrections: { readonly line: number; readonly length: number; readonly output: string }[] = [];

  constructor(page: string, options: PageOptions) {
    this.page = page;
    this.options = options;
    this.#page = page;
  }

  async follow(): Promise<void> {
    this.#standIns.bind(FOLDER, this.options.folder);
    await this.#choosePorts();
    for (const block of blocksOf(this.page)) {
      if (block.kind === 'console') await this.#runBlock(block);
      else if (block.kind === 'edit') this.#edit(block);
      else this.#write(block.name, this.#standIns.filled(block.text));
    }
  }

  async close(): Promise<void> {
    for (const terminal of this.#terminals.values()) await terminal.close();
  }

  /** A port that a page names may be in use on this machine. */
  async #choosePorts(): Promise<void> {
    for (const port of new Set([...this.page.matchAll(PORT)].map(([, named = '']) => named))) {
      this.#standIns.bind(port, String(await freePort()));
    }
  }

  #write(name: string, text: string): void {
    const path = join(this.options.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  #edit({ name, before, after }: EditBlock): void {
    const text = `\n${readFileSync(join(this.options.folder, name), 'utf8')}`;
    const parts = text.split(`\n${this.#standIns.filled(before)}`);
    if (parts.length !== 2) throw new PageError(`${name} has these lines ${parts.length - 1} times:\n${before}`);
    this.#write(name, parts.join(`\n${this.#standIns.filled(after)}`).slice(1));
  }

  async #runBlock({ terminal: name, commands }: ConsoleBlock): Promise<void> {
    for (const [index, command] of commands.entries()) {
      const isStarted = commands[index + 1] === undefined && this.#isInterruptedLater(name, command);
      if (command.text === INTERRUPT) await this.#interrupt(name, command);
      else if (isStarted) await this.#start(name, command);
      else await this.#run(name, command, commands[index + 1]);
    }
  }

  /** Whether the next line of that terminal is `^C`. */
  #isInterruptedLater(name: string, command: Command): boolean {
    const blocks = blocksOf(this.page).filter((block) => block.kind === 'console');
    const lines = blocks.filter(({ terminal }) => terminal === name).flatMap(({ commands }) => commands);
    const index = lines.findIndex(({ line }) => line === command.line);
    return lines[index + 1]?.text === INTERRUPT;
  }

  #terminal(name: string): Terminal {
    const PATH = [join(this.options.packageFolder, 'node_modules/.bin'), process.env['PATH']].join(':');
    const known =
      this.#terminals.get(name) ?? new Terminal(this.options.folder, { PATH, HOME: this.#userHome, LANG: 'C.UTF-8' });
    this.#terminals.set(name, known);
    return known;
  }

  async #run(name: string, command: Command, next: Command | undefined): Promise<void> {
    const text = this.#named(this.#standIns.filled(command.text));
    const [isInstall, others = ''] = INSTALL.exec(text) ?? [];
    if (isInstall !== undefined) {
      this.#install(others.split(' ').filter(Boolean));
      return;
    }
    const { status, output } = await this.#terminal(name).run(text);
    this.#seen += output;
    this.#compare(command, output);
    const isShown = next?.text.startsWith('echo $?') === true;
    if (status !== 0 && !isShown) {
      throw new PageError(
        `\`${command.text}\` ended with ${status}, and no \`echo $?\` shows it; it printed:\n${output}`,
      );
    }
  }

  /** @param others further packages that the page installs; each is a dependency of the package */
  #install(others: readonly string[]): void {
    const [from, to] = [this.options.packageFolder, this.options.folder].map((folder) => join(folder, 'node_modules'));
    const missing = others.filter((other) => !existsSync(join(from ?? '', other)));
    if (missing.length > 0) throw new PageError(`not installed with the package: ${missing.join(', ')}`);
    if (!existsSync(to ?? '')) symlinkSync(from ?? '', to ?? '');
  }

  async #start(name: string, command: Command): Promise<void> {
    const expected = command.output.join('\n');
    const text = this.#standIns.filled(command.text);
    await this.#terminal(name).start(text, (output) => this.#standIns.matches(expected, output));
  }

  async #interrupt(name: string, command: Command): Promise<void> {
    const { status, output } = await this.#terminal(name).interrupt();
    this.#terminals.delete(name);
    this.#compare(command, output);
    if (status !== 0) throw new PageError(`the command before ${INTERRUPT} ended with ${status}:\n${output}`);
  }

  /** Replaces what stands for an id while a page is being written. */
  #named(text: string): string {
    if (!this.options.write) return text;
    return text.replace(/@([a-z]+)(\d+)/g, (name, prefix: string, number: string) => {
      const kind = prefix === 'hash' ? /\b[0-9a-f]{64}\b/g : new RegExp(`\\b${prefix}_[0-9A-Za-z]{21}\\b`, 'g');
      const id = [...new Set(this.#seen.match(kind))][Number(number) - 1] ?? name;
      this.#page = this.#page.replaceAll(name, this.#standIns.shown(id));
      return id;
    });
  }

  #compare({ text, output: lines, line }: Command, output: string): void {
    if (this.#standIns.matches(lines.join('\n'), output)) return;
    if (this.options.write) this.#standIns.pair(lines.join('\n'), output);
    const shown = this.#standIns.shown(output).replace(/\n+$/, '');
    if (this.options.write) this.#corrections.push({ line, length: lines.length, output: shown });
    else throw new PageError(`line ${line}: \`${text}\` should print\n${lines.join('\n')}\nand printed\n${shown}`);
  }

  corrected(): string {
    const lines = this.#page.split('\n');
    for (const { line, length, output } of this.#corrections.toReversed()) {
      lines.splice(line, length, ...(output === '' ? [] : output.split('\n')));
    }
    return lines.join('\n');
  }
}
