import { usageError } from '../../../../core/errors.js';
import { resolve } from 'node:path';
import { createPrivateFile } from '../../../../system/files/private-file.js';
import { readBuiltPage, readBuiltTemplate, type PageFile } from '../../../inspector/page-folder.js';
import { errorCode } from '../../../../system/error-code.js';
import { AGENT_DEFAULTS } from '../../../../runtime/agents/caller-input.js';
import type { LedgerReader } from '../../../../runtime/ledger/ledger-reader.js';
import type { InspectorSource } from '../../../inspector/inspector-source.js';
import { defineCommand, type CliCommand, type ArgumentsOf, type CommandOption, type ExitCode } from '../../command.js';
import { integerType, PATH_TYPE, PORT_TYPE } from '../../option-types.js';
import { KEY_OPTIONS, readTrustedKey } from '../../options/evidence-file.js';
import { homeOf, withLedger } from '../../options/folders.js';
import { type Io } from '../../io.js';
import { progressFor } from '../../progress-bar.js';
import { escapeText } from '../../text/terminal.js';

const PORT_DEFAULT = '7392';
/** Size limit of an HTML file, because a browser parses it in one piece. */
const HTML_MIB_DEFAULT = '64';

const OPTIONS = [
  {
    name: 'port',
    value: 'PORT',
    type: PORT_TYPE,
    default: PORT_DEFAULT,
    help: `the port on 127.0.0.1 (default ${PORT_DEFAULT}; 0: any free port)`,
  },
  {
    name: 'html',
    value: 'OUT',
    type: PATH_TYPE,
    help: 'write the page and the bundle into one HTML file instead of serving them',
  },
  {
    name: 'html-mib',
    value: 'N',
    type: integerType({ min: 1, max: 1_024, takes: 'a number from 1 to 1024' }),
    default: HTML_MIB_DEFAULT,
    help: `size limit of that file in MiB (default ${HTML_MIB_DEFAULT}): content beyond it is omitted`,
  },
  { name: 'actor', value: 'NAME', default: AGENT_DEFAULTS.actor, help: 'your name, as the page shows it' },
  { name: 'role', value: 'ID', default: AGENT_DEFAULTS.role, help: 'your role, as the page shows it' },
  ...KEY_OPTIONS,
] as const satisfies readonly CommandOption[];

type InspectArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike inspect`: opens the inspector on a bundle, or on a home, and changes nothing. */
export const inspectCommand: CliCommand = defineCommand({
  name: 'inspect',
  access: 'read',
  accessWith: [{ given: 'operands', access: 'none' }],
  summary: 'Show a ledger in the inspector page: an evidence bundle, or a home directory',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: OPTIONS,
  notes: [
    'FILE is the output of `ledger export`. The command needs no other data. Without --key, it trusts the key in FILE.',
    'A changed or incomplete FILE is shown too: flagged, with nothing of it verified, and the exit code is 1. A FILE is',
    'also replayed, as `turnpike replay` does: the page and the command say what could not be, and the exit code is 4,',
    'also if the command is stopped before that has ended.',
    'Without FILE, it shows the home directory, also while another process uses it. The page is read-only, and the',
    'command changes nothing: it recovers no run and does not record readers, so it shows what `ledger export` would',
    'write. `turnpike serve` records who was shown content.',
  ],
  async run(args, io) {
    const [file] = args.operands;
    if (file !== undefined) return inspectBundle(resolve(io.cwd, file), args, io);
    if (args.values.html !== undefined)
      throw args.usageError('--html needs a FILE: write one with `turnpike ledger export`');
    return withLedger(args, io, ({ reader }) => inspectHome(reader, args, io));
  },
});

async function inspectBundle(file: string, args: InspectArguments, io: Io): Promise<ExitCode> {
  const { inspectedBundle } = await import('../../../inspector/ledger-inspector-source.js');
  const key = readTrustedKey(args, io);
  const { source, flaw } = await inspectedBundle(file, key, progressFor(args, io));
  try {
    if (flaw !== null) await io.stderr.writeLine(`NOT VERIFIED: ${flaw}. The page marks what was changed.`);
    else if (key === null)
      await io.stderr.writeLine(
        'verified with the key in the bundle itself: compare it with a key from another source (--key)',
      );
    const { html: out } = args.values;
    if (out === undefined) await serveInspector(source, args, io);
    else await writeHtml(out, source, args, io);
    return flaw === null ? await reportReplayed(source, out !== undefined, io) : 1;
  } finally {
    await source.close();
  }
}

/** Reports what was not checked, as the page does: everything, if the command was stopped before the replay ended. */
async function reportReplayed(source: InspectorSource, isWritten: boolean, io: Io): Promise<ExitCode> {
  const { replayed } = isWritten ? { replayed: await source.replayed() } : await source.info();
  if (replayed === undefined || replayed?.verdict === 'replayed') return 0;
  if (replayed === null) {
    await io.stderr.writeLine('not checked: the page was closed before the replay of the entries ended');
    return 4;
  }
  const word = replayed.verdict === 'differs' ? 'NOT VERIFIED' : 'not checked';
  for (const note of replayed.notes) await io.stderr.writeLine(escapeText(`${word}: ${note}`));
  return replayed.verdict === 'differs' ? 1 : 4;
}

async function inspectHome(reader: LedgerReader, args: InspectArguments, io: Io): Promise<ExitCode> {
  const { homeInspectorSource: homeSource } = await import('../../../inspector/ledger-inspector-source.js');
  const source = homeSource(reader, homeOf(args, io), false);
  try {
    await serveInspector(source, args, io);
  } finally {
    await source.close();
  }
  return 0;
}

async function serveInspector(source: InspectorSource, args: InspectArguments, io: Io): Promise<void> {
  // From now on it waits for requests.
  io.progress.close();
  const { serveSource } = await import('../../../http/index.js');
  const { actor, role, port } = args.values;
  const server = await serveSource({
    source,
    page: readPage(),
    port,
    reader: { actor, role },
    log: io.log,
  });
  try {
    // Installed before the address is printed: a reader of the address may stop the command at once.
    const stop = io.stop();
    await io.stderr.writeLine(`${server.url}/#token=${server.token}`);
    if (!stop.aborted) await new Promise((end) => stop.addEventListener('abort', end, { once: true }));
  } finally {
    await server.close();
  }
}

async function writeHtml(out: string, source: InspectorSource, args: InspectArguments, io: Io): Promise<void> {
  const { renderOneFile: oneFileHtml } = await import('../../../inspector/render-one-file.js');
  const template = readBuiltTemplate();
  if (template === null) throw pageNotBuiltError();
  const html = await oneFileHtml(
    template,
    source,
    { maxBytes: args.values.htmlMib * 1_048_576 },
    progressFor(args, io),
  );
  if (!isCreated(out, html)) throw usageError(`cannot write ${out}: it exists already`);
  await io.stderr.writeLine(`${out}: ${await source.size()} entries, ${Buffer.byteLength(html)} bytes`);
}

/** The page contains the ledger, so it is private like the ledger. @returns false if there is a file of this name */
function isCreated(path: string, html: string): boolean {
  try {
    return createPrivateFile(path, html);
  } catch (error) {
    throw usageError(`cannot write ${path}: ${errorCode(error)}`);
  }
}

function readPage(): ReadonlyMap<string, PageFile> {
  const built = readBuiltPage();
  if (built === null) throw pageNotBuiltError();
  return built;
}

const pageNotBuiltError = (): Error => usageError('the page is not built: run `npm run build`');
