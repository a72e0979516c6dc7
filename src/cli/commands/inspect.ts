import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { builtPage, builtTemplate, type PageFile } from '../../adapters/page-folder.js';
import { errorCode } from '../../adapters/error-code.js';
import { DEFAULTS } from '../../runtime/open-request.js';
import type { Turnpike } from '../../runtime/turnpike.js';
import type { AccessAudit } from '../../service/http/service.js';
import type { InspectorSource } from '../../service/inspector/source.js';
import { portIn, wrong } from '../arguments.js';
import type { Args, Command, ExitCode } from '../command.js';
import { KEY_OPTION, keyOf } from '../evidence-file.js';
import { withHome } from '../held-home.js';
import { usage, type Io } from '../io.js';

const PORT_DEFAULT = '7392';
/** Of one HTML file. A browser has to parse it at once. */
const HTML_MIB_DEFAULT = '64';

/** `turnpike inspect`: the inspector on a bundle, or on a home that nobody else has. */
export const inspect: Command = {
  name: 'inspect',
  summary: 'Look at a ledger in the inspector page: an exported bundle, or a home',
  operands: { usage: '[FILE]', min: 0, max: 1 },
  options: [
    { name: 'port', value: 'PORT', help: `the port on 127.0.0.1 (default ${PORT_DEFAULT}; 0: any that is free)` },
    { name: 'html', value: 'OUT', help: 'write the page with the bundle inside as one HTML file, and serve nothing' },
    {
      name: 'html-mib',
      value: 'N',
      help: `how large that may be (default ${HTML_MIB_DEFAULT}): content that does not fit is left out`,
    },
    { name: 'actor', value: 'NAME', help: 'of a home: who looks, as its ledger tells when content is shown' },
    { name: 'role', value: 'ID', help: 'of a home: in which role' },
    KEY_OPTION,
  ],
  notes: [
    'FILE is what `ledger export` wrote: nothing else is needed, and nothing is changed. Without --key the key in it is',
    'believed. Without FILE the home is looked at, and cannot be used by others meanwhile: where one is served already,',
    'open the page of `turnpike serve`. Nothing can be done to a run from here.',
  ],
  async run(args, io) {
    const [file] = args.operands;
    if (file !== undefined) return inspectedBundle(resolve(io.cwd, file), args, io);
    if (args.text('html') !== undefined)
      throw wrong(inspect, '--html goes with a FILE: write one with `ledger export`');
    return withHome(args, io, ({ here }) => inspectedHome(here, args, io), { own: true });
  },
};

async function inspectedBundle(file: string, args: Args, io: Io): Promise<ExitCode> {
  const { bundleSource } = await import('../../service/inspector/ledger-source.js');
  const key = keyOf(args, io);
  const source = await bundleSource(file, key);
  try {
    if (key === null)
      await io.stderr.say('checked by the key in the bundle: compare it with one that came another way (--key)');
    const out = args.text('html');
    if (out === undefined) await served(source, undefined, args, io);
    else await written(resolve(io.cwd, out), source, args, io);
  } finally {
    await source.close();
  }
  return 0;
}

async function inspectedHome(turnpike: Turnpike | null, args: Args, io: Io): Promise<ExitCode> {
  if (turnpike === null) return 0;
  const { homeSource } = await import('../../service/inspector/ledger-source.js');
  const { ledgerAudit } = await import('../../service/http/ledger-audit.js');
  const source = homeSource(turnpike.ledger, turnpike.home ?? turnpike.keys, false);
  try {
    await served(source, ledgerAudit(turnpike, source), args, io);
  } finally {
    await source.close();
  }
  return 0;
}

async function served(source: InspectorSource, audit: AccessAudit | undefined, args: Args, io: Io): Promise<void> {
  const { serveSource } = await import('../../service/http/index.js');
  const reader = { actor: args.text('actor') ?? DEFAULTS.actor, role: args.text('role') ?? DEFAULTS.role };
  const how = { source, page: page(), port: portIn(inspect, args, 'port', PORT_DEFAULT), reader, log: io.log };
  const server = await serveSource(audit === undefined ? how : { ...how, audit });
  try {
    await io.stderr.say(`${server.url}/#token=${server.token}`);
    const stop = io.stop();
    if (!stop.aborted) await new Promise((end) => stop.addEventListener('abort', end, { once: true }));
  } finally {
    await server.close();
  }
}

async function written(out: string, source: InspectorSource, args: Args, io: Io): Promise<void> {
  const { oneFileHtml } = await import('../../service/inspector/one-file.js');
  const template = builtTemplate();
  if (template === null) throw notBuilt();
  const mib = Number(args.text('html-mib') ?? HTML_MIB_DEFAULT);
  if (!Number.isInteger(mib) || mib < 1 || mib > 1_024) throw wrong(inspect, '--html-mib takes a number up to 1024');
  const html = await oneFileHtml(template, source, { maxBytes: mib * 1_048_576 });
  await writeFile(out, html, { flag: 'wx' }).catch((error: unknown) => {
    throw usage(`${out} cannot be written: ${errorCode(error)}`);
  });
  await io.stderr.say(`${out}: ${await source.size()} entries, ${Buffer.byteLength(html)} bytes`);
}

function page(): ReadonlyMap<string, PageFile> {
  const built = builtPage();
  if (built === null) throw notBuilt();
  return built;
}

const notBuilt = (): Error => usage('the page is not built: run `npm run build`');
