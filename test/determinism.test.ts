// Where the sources may read time, chance, the environment and the order of the machine. Everything else takes them
// from a port, so that a replay and a simulation see the same.

import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';
import { filesIn, importsOf, isAddedToInterfaces, isOfPage, nodesOf, parse, targetOf, textOf } from './sources.js';

const TIME_AND_CHANCE = [
  'Date.now',
  'Date()',
  'performance',
  'hrtime',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'nextTick',
  'queueMicrotask',
  'AbortSignal.timeout',
  'Math.random',
  'randomUUID',
  'randomBytes',
  'randomInt',
  'randomFillSync',
  'getRandomValues',
];
const ENVIRONMENT = ['process.env', 'process.argv', 'process.cwd', 'process.pid', 'process.platform', 'process.uptime'];
/** What comes in another order, or another form, on another machine. */
const ORDER = ['readdir', 'readdirSync', 'opendir', 'opendirSync', 'localeCompare', 'Intl'];
/** Imports that give time or chance under any name. */
const PACKAGES = ['node:timers', 'node:timers/promises', 'node:perf_hooks', 'nanoid'];
const NAMES = new Set([...TIME_AND_CHANCE, ...ENVIRONMENT, ...ORDER]);
const MENTION = new RegExp([...NAMES, ...PACKAGES, 'toLocale', 'Date\\('].join('|').replaceAll('Date()|', ''));

const CONTROL = 'the control socket of a home, which another process is at the other end of';
const WAIT = 'the command itself waits, for a person or a process';
const DRAFT = 'the name of a draft, which another process must not share';

/** Reads outside the adapters, each with its reason. One that is no longer there fails the test. */
const READS: Readonly<Record<string, string>> = {
  'src/interfaces/cli/first-process.ts queueMicrotask': 'a signal ends the process after its other listeners',
  'src/interfaces/cli/main.ts process.argv': 'the command reads its own arguments',
  'src/features/hooks/commands/program/run-hook.ts process.cwd': 'the command resolves paths as its caller means them',
  'src/features/hooks/commands/program/hook-program.ts process.argv': 'the command reads its own arguments',
  'src/features/hooks/commands/program/run-hook.ts process.env':
    'they name the folder of the project, and those of the user, in which it counts and its client has its settings',
  'src/features/hooks/commands/program/run-hook.ts setTimeout': WAIT,
  'src/interfaces/cli/run-cli-command.ts process.argv': 'the command reads its own arguments',
  'src/interfaces/cli/run-cli-command.ts process.cwd': 'the command resolves paths as its caller means them',
  'src/interfaces/cli/run-cli-command.ts process.env': 'colours, as the terminal wants them, and a setting of SQLite',
  'src/interfaces/cli/run-cli-command.ts process.pid': 'a signal that it has handled ends this process',
  'src/interfaces/cli/templates.ts process.pid': DRAFT,
  'src/interfaces/cli/templates.ts readdir': 'sorted',
  'src/features/conditions/counters/window-start.ts Intl': 'time zones: each decision records when its window began',
  'src/features/policy-lint/commands/lint-commands.ts process.pid': DRAFT,
  'src/features/policy-lint/commands/lint-commands.ts readdir': 'sorted',
  'src/interfaces/cli/proposal-loop.ts node:timers/promises': WAIT,
  'src/interfaces/cli/commands/policy/policy-deny-command.ts node:timers/promises': WAIT,
  'src/interfaces/cli/store/open-worker.ts node:timers/promises': WAIT,
  'src/interfaces/cli/demo.ts node:timers/promises': WAIT,
  'src/interfaces/cli/commands/runs/runs-command.ts node:timers/promises': WAIT,
  'src/interfaces/cli/home-access.ts node:timers/promises': WAIT,
  'src/interfaces/cli/options/person-options.ts setTimeout': WAIT,
  'src/features/hooks/install/inspect-client.ts process.platform': 'the folders of managed settings differ by it',
  'src/host/control/control-client.ts setInterval': CONTROL,
  'src/host/control/control-client.ts setTimeout': CONTROL,
  'src/host/control/control-server.ts node:timers/promises': CONTROL,
  'src/home/home.ts readdirSync': 'it asks of all names the same, in any order',
};

const DEFAULT = 'the default of an option';
const HOME = 'a home is opened from files; a ground without one has its own store and external head';
const PARTS = 'the parts of a store are opened from folders; a simulation brings a ground with its own external head';
const CLIENTS = 'it looks at the programs and files of clients on this machine, and runs no tree';
const COPY = 'a copy reads and writes files, and runs no tree';
const DOCTOR = 'an examination measures the disk and reads files, and runs no tree';
const BACKUP = 'a backup reads one home and a restore writes another, and neither runs in an open Turnpike';
const FILE = 'it reads or writes a file, whose draft has a drawn name';

/**
 * Imports into the runtime of adapters that read time or chance, themselves or through others, each with its reason.
 * The composition root may import all: what it takes, a ground or an option replaces. So an import that a simulation
 * cannot replace is found here.
 */
const ROOT = 'src/host/wire.ts';
const IMPORTS: Readonly<Record<string, string>> = {
  'src/features/hooks/clients/judge-hooks.ts -> src/features/hooks/client-files/client-file.ts': 'types',
  'src/features/hooks/install/inspect-client.ts -> src/features/hooks/client-files/client-version.ts': CLIENTS,
  'src/features/hooks/install/inspect-client.ts -> src/features/hooks/client-files/find-places.ts': CLIENTS,
  'src/features/hooks/install/inspect-client.ts -> src/features/hooks/client-files/client-file.ts': CLIENTS,
  'src/features/hooks/install/install-client.ts -> src/features/hooks/client-files/client-version.ts': CLIENTS,
  'src/features/hooks/install/install-client.ts -> src/features/hooks/client-files/client-file.ts': CLIENTS,
  'src/runtime/content/content-reader.ts -> src/system/system-pace.ts': DEFAULT,
  'src/host/control/control-client.ts -> src/system/network/unix-socket.ts': CONTROL,
  'src/host/control/control-server.ts -> src/system/network/unix-socket.ts': CONTROL,
  'src/features/exports/assemble-bag.ts -> src/features/exports/bag/bag-zip.ts':
    'it queues a microtask between entries, and reads no time',
  'src/features/backup/backup-home.ts -> src/system/files/small-file.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/keys/erasure-list.ts': BACKUP,
  'src/features/backup/accept-failover.ts -> src/stores/ledger/head-file.ts': BACKUP,
  'src/features/backup/accept-failover.ts -> src/stores/ledger/kept-heads.ts': BACKUP,
  'src/features/backup/accept-failover.ts -> src/stores/memory/memory-head-store.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/ledger/head-file.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/sqlite/sqlite-ledger-store.ts': BACKUP,
  'src/features/backup/backup-manifest.ts -> src/system/files/small-file.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/keys/case-keys.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/postgres/copy/postgres-copy-source.ts': BACKUP,
  'src/features/backup/backup-home.ts -> src/stores/sqlite/copy/sqlite-copy-target.ts': BACKUP,
  'src/features/backup/record-restore.ts -> src/stores/keys/session-key.ts': BACKUP,
  'src/features/backup/record-restore.ts -> src/system/system-clock.ts': BACKUP,
  'src/features/backup/record-restore.ts -> src/system/system-pace.ts': BACKUP,
  'src/features/backup/restore-home.ts -> src/system/files/small-file.ts': BACKUP,
  'src/features/backup/restore-home.ts -> src/stores/keys/case-keys.ts': BACKUP,
  'src/features/backup/restore-home.ts -> src/stores/keys/erasure-list.ts': BACKUP,
  'src/features/backup/restore-home.ts -> src/stores/ledger/head-file.ts': BACKUP,
  'src/features/backup/restore-home.ts -> src/stores/sqlite/sqlite-ledger-store.ts': BACKUP,
  'src/features/doctor/examine.ts -> src/system/files/file-disk-space.ts': DOCTOR,
  'src/features/doctor/examine.ts -> src/stores/keys/case-keys.ts': DOCTOR,
  'src/features/doctor/examine.ts -> src/stores/keys/erasure-list.ts': DOCTOR,
  'src/features/doctor/examine.ts -> src/stores/keys/key-file.ts': DOCTOR,
  'src/home/keys/list-keys.ts -> src/stores/keys/case-key-notes.ts': HOME,
  'src/home/keys/list-keys.ts -> src/stores/keys/key-file.ts': HOME,
  'src/home/keys/rotate-ledger-key.ts -> src/stores/keys/key-file.ts': HOME,
  'src/home/keys/rotate-ledger-key.ts -> src/stores/keys/key-history-file.ts': HOME,
  'src/home/keys/rotate-ledger-key.ts -> src/stores/keys/erasure-list.ts': HOME,
  'src/home/ledger-key.ts -> src/stores/keys/key-history-file.ts': HOME,
  'src/home/copy-marker.ts -> src/system/files/small-file.ts': COPY,
  'src/features/backup/copy/copy-source.ts -> src/stores/keys/case-keys.ts': COPY,
  'src/features/backup/copy/copy-source.ts -> src/stores/postgres/copy/postgres-copy-source.ts': COPY,
  'src/features/backup/copy/copy-source.ts -> src/stores/postgres/postgres-ledger-store.ts': COPY,
  'src/features/backup/copy/copy-source.ts -> src/stores/sqlite/copy/sqlite-copy-source.ts': COPY,
  'src/features/backup/copy/copy-target.ts -> src/stores/keys/case-keys.ts': COPY,
  'src/features/backup/copy/copy-target.ts -> src/stores/postgres/copy/postgres-copy-target.ts': COPY,
  'src/features/backup/copy/copy-target.ts -> src/stores/postgres/postgres-ledger-store.ts': COPY,
  'src/features/backup/copy/copy-target.ts -> src/stores/sqlite/copy/sqlite-copy-target.ts': COPY,
  'src/features/backup/copy/copy-target.ts -> src/stores/sqlite/sqlite-ledger-store.ts': COPY,
  'src/home/home.ts -> src/stores/ledger/head-file.ts': HOME,
  'src/home/home.ts -> src/stores/ledger/kept-heads.ts': HOME,
  'src/home/home.ts -> src/stores/records/sqlite-ledger-records.ts': HOME,
  'src/home/home.ts -> src/stores/sqlite/content/sqlite-case-key-table.ts': HOME,
  'src/home/home.ts -> src/stores/sqlite/sqlite-ledger-store.ts': HOME,
  'src/home/home.ts -> src/stores/sqlite/untouched-file.ts': HOME,
  'src/home/ledger-key.ts -> src/stores/keys/key-file.ts': HOME,
  'src/runtime/ledger/ledger-reader.ts -> src/system/system-pace.ts': DEFAULT,
  'src/host/readiness/turnpike-readiness.ts -> src/stores/keys/session-key.ts': HOME,
  'src/host/storage-environment.ts -> src/stores/ledger/head-file.ts': PARTS,
  'src/host/storage-environment.ts -> src/stores/memory/memory-head-store.ts':
    'it reads no time: it imports the type of a head file',
  'src/home/store-home.ts -> src/system/files/small-file.ts': PARTS,
  'src/home/tracked-keys.ts -> src/system/files/small-file.ts': FILE,
  'src/home/store-home.ts -> src/stores/keys/key-file.ts': PARTS,
  'src/host/turnpike-options.ts -> src/sandbox/commands/walled-command-runner.ts': 'a type',
  'src/features/identity/callers/oidc-callers.ts -> src/features/identity/provider/oidc-provider.ts': 'a type',
  'src/features/upstreams/upstream-server-client.ts -> src/features/upstreams/mcp/mcp-client.ts':
    'a server of the outside is called',
  'src/features/upstreams/connect-upstreams.ts -> src/system/system-clock.ts': DEFAULT,
  'src/features/sessions/spec/spec-source.ts -> src/system/files/small-file.ts': FILE,
  'src/features/upstreams/upstream-files.ts -> src/system/files/small-file.ts': FILE,
  'src/runtime/ledger/watch-ledger.ts -> src/system/system-pace.ts': DEFAULT,
  'src/runtime/ledger/watch-ledger.ts -> src/system/system-clock.ts': DEFAULT,
};

const SOURCES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.ts$/)].filter((path) => !isOfPage(path));
/** The folders that implement a port or talk to the machine. Only they may read time, chance and the environment. */
const ADAPTERS = [
  'src/system/',
  'src/stores/',
  'src/sandbox/',
  'src/home/policy/',
  'src/features/exports/bag/',
  'src/features/hooks/client-files/',
  'src/features/identity/provider/',
  'src/features/telemetry/otel/',
  'src/features/upstreams/mcp/',
  'src/interfaces/inspector/xstate/',
  'src/interfaces/inspector/layout-worker.ts',
  'src/interfaces/inspector/page-folder.ts',
  'src/interfaces/restate/',
  'src/interfaces/sdk/ai-sdk-agent.ts',
];
const isAdapter = (path: string): boolean => ADAPTERS.some((place) => path.startsWith(place));
/** What is composed by the root: the parts of a service that a simulation runs too. */
const isComposed = (path: string): boolean =>
  /^src\/(?:runtime|home|features|host)\//.test(path) && !isAddedToInterfaces(path);

/** What a file reads of the machine, each once. */
function readsIn(path: string): readonly string[] {
  // Most files need not be parsed.
  if (!MENTION.test(textOf(path))) return [];
  const source = parse(path);
  const names = nodesOf(source).flatMap((node) => readOf(node) ?? []);
  return [...new Set([...names, ...importsOf(source).filter((name) => PACKAGES.includes(name))])];
}

function readOf(node: ts.Node): string | null {
  if (ts.isPropertyAccessExpression(node)) return NAMES.has(node.getText()) ? node.getText() : null;
  if (ts.isIdentifier(node)) return isRead(node) ? node.text : null;
  if (!ts.isNewExpression(node) && !ts.isCallExpression(node)) return null;
  const isNow = node.expression.getText() === 'Date' && (node.arguments?.length ?? 0) === 0;
  return isNow ? 'Date()' : null;
}

/** What is imported under another name is read where it is imported. */
function isRead(node: ts.Identifier): boolean {
  if (node.text.startsWith('toLocale')) return true;
  if (!NAMES.has(node.text)) return false;
  if (!ts.isImportSpecifier(node.parent)) return true;
  const [module] = importsOf(node.getSourceFile()).filter((name) => PACKAGES.includes(name));
  return node.parent.propertyName === node && module === undefined;
}

describe('time, chance, environment and order', () => {
  test('C39: they are read in adapters, or where a reason is given', () => {
    const found = SOURCES.filter((path) => !isAdapter(path)).flatMap((path) =>
      readsIn(path).map((read) => `${path} ${read}`),
    );
    expect(found.sort()).toEqual(Object.keys(READS).sort());
  });

  test('C39: what the root composes imports an adapter that reads time or chance where a ground can replace it', () => {
    const readers = timed();
    const found = SOURCES.filter((path) => isComposed(path) && !isAdapter(path) && path !== ROOT).flatMap((path) =>
      importsOf(parse(path))
        .map((name) => targetOf(path, name))
        .filter((target) => target !== null && readers.has(target))
        .map((target) => `${path} -> ${target ?? ''}`),
    );
    expect([...new Set(found)].sort()).toEqual(Object.keys(IMPORTS).sort());
  });
});

/** The adapters that read time or chance, with those that import one. */
function timed(): ReadonlySet<string> {
  const kinds = new Set([...TIME_AND_CHANCE, ...PACKAGES]);
  const adapters = SOURCES.filter(isAdapter);
  const found = new Set(adapters.filter((path) => readsIn(path).some((read) => kinds.has(read))));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const path of adapters) {
      if (importsOf(parse(path)).some((name) => found.has(targetOf(path, name) ?? ''))) found.add(path);
    }
  }
  return found;
}
