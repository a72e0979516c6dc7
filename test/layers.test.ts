// Who may import whom. The tables are the rule; sources are read with the TypeScript parser, types count as imports.

import { describe, expect, test } from '@jest/globals';
import { filesIn, importsOf, parse, targetOf } from './sources.js';

const FOUNDATION = ['contract', 'errors', 'policy', 'step', 'run', 'session'];
const KERNEL = [...FOUNDATION, 'ledger', 'machines'];
const EVERYTHING = [...KERNEL, 'kernel', 'ports', 'replay', 'engine', 'bagit', 'adapters', 'identity', 'hooks'];

/** A layer is a folder of src, the folder machines, or a file of src. It may always import itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  contract: [],
  ports: ['contract'],
  policy: ['contract', 'errors'],
  step: ['contract', 'errors', 'policy'],
  run: ['contract', 'errors', 'ports'],
  session: ['contract', 'errors', 'ports'],
  bagit: ['contract', 'errors', 'ports'],
  ledger: ['contract', 'errors', 'ports'],
  machines: FOUNDATION,
  kernel: KERNEL,
  replay: [...KERNEL, 'kernel', 'ports'],
  engine: ['contract', 'errors', 'ports', 'ledger', 'kernel'],
  adapters: ['contract', 'errors', 'ports', 'identity'],
  identity: ['contract'],
  hooks: ['contract'],
  runtime: EVERYTHING,
  service: [...EVERYTHING, 'runtime'],
  cli: [...EVERYTHING, 'runtime', 'service'],
  index: [...EVERYTHING, 'runtime'],
  sdk: [...EVERYTHING, 'runtime'],
  inspector: ['contract'],
};

/** Departures from the table, each with its reason. One that is no longer needed fails the test. */
const DEPARTURES: Readonly<Record<string, string>> = {
  'src/stores/ledger/integrate-batch.ts -> src/core/ledger/proof/merkle.ts':
    'a store that integrates its commits extends the log, and there is one Merkle tree',
  'src/core/contract/canonical-json.ts -> src/core/errors.ts':
    'a value without a canonical form is a bug, and errors has no imports',
  'src/engine/ports/effects/capability.ts -> src/core/errors.ts':
    'an effect that nothing allows must fail loudly, and errors has no imports',
};

/** Where each third-party package may be imported: a file, or everything below a folder. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  // The module of a service, which the operator names.
  'something computed': ['src/system/files/load-module.ts'],
  xstate: [
    'machines/',
    'src/core/kernel/',
    'src/interfaces/inspector/xstate/inspection-hub.ts',
    'src/interfaces/inspector/xstate/stately-observer.ts',
  ],
  ws: ['src/interfaces/inspector/xstate/xstate-inspect-socket.ts'],
  typebox: [
    'src/core/contract/',
    'src/features/hooks/native-tools.ts',
    'src/core/policy/',
    'src/core/step/',
    'src/home/policy/manifest-policy-source.ts',
    'src/interfaces/restate/',
    'src/core/ledger/verification/check-entry.ts',
    'src/host/',
    'src/interfaces/sdk/sdk-tool.ts',
    'src/interfaces/mcp/',
    'src/interfaces/http/',
  ],
  'better-sqlite3': ['src/stores/sqlite/sqlite-binding.ts'],
  kysely: ['src/stores/records/'],
  '@cedar-policy/cedar-wasm': ['src/core/policy/conditions/cedar.ts'],
  pg: ['src/stores/postgres/', 'src/stores/records/postgres-backend.ts'],
  '@restatedev/restate-sdk': ['src/interfaces/restate/'],
  jose: ['src/features/identity/provider/signed-token.ts'],
  'smol-toml': ['src/features/hooks/clients/read-toml.ts'],
  winston: ['src/system/winston-log.ts'],
  nanoid: ['src/system/nanoid-ids.ts'],
  yaml: ['src/core/policy/files/strict-yaml.ts'],
  yauzl: ['src/features/exports/bag/bag-zip.ts'],
  'libphonenumber-js': ['src/features/promotions/phone-numbers.ts'],
  ibantools: ['src/features/promotions/account-numbers.ts'],
  ai: ['src/interfaces/sdk/ai-sdk-agent.ts', 'src/interfaces/sdk/ai-sdk.ts'],
  '@langchain/core': ['src/interfaces/sdk/langchain.ts'],
  '@langchain/langgraph': ['src/interfaces/sdk/langchain.ts'],
  preact: ['src/interfaces/inspector/page/'],
  '@preact/signals': ['src/interfaces/inspector/page/'],
  elkjs: ['src/interfaces/inspector/elk-layout.ts', 'src/interfaces/inspector/layout-worker.ts'],
  fastify: [
    'src/interfaces/http/http-plugin.ts',
    'src/interfaces/http/turnpike-http.ts',
    'src/interfaces/http/http-handler.ts',
    'src/interfaces/http/send-response.ts',
  ],
  '@opentelemetry/api': ['src/features/telemetry/otel/otel-telemetry.ts'],
  '@opentelemetry/exporter-metrics-otlp-proto': ['src/features/telemetry/otel/sdk-telemetry.ts'],
  '@opentelemetry/exporter-prometheus': ['src/features/telemetry/otel/sdk-telemetry.ts'],
  '@opentelemetry/otlp-exporter-base': ['src/features/telemetry/otel/sdk-telemetry.ts'],
  '@opentelemetry/otlp-transformer': ['src/features/telemetry/otel/sdk-telemetry.ts'],
  '@opentelemetry/resources': ['src/features/telemetry/otel/sdk-telemetry.ts'],
  '@opentelemetry/sdk-metrics': [
    'src/features/telemetry/otel/histogram-meter.ts',
    'src/features/telemetry/otel/sdk-telemetry.ts',
  ],
  '@modelcontextprotocol/client': [
    'src/features/upstreams/mcp/http-messages.ts',
    'src/features/upstreams/mcp/mcp-client.ts',
  ],
  '@modelcontextprotocol/server': ['src/interfaces/mcp/'],
  'eventsource-parser': ['src/features/upstreams/mcp/event-stream.ts'],
};

interface Edge {
  readonly from: string;
  readonly name: string;
  /** Null for a package. */
  readonly to: string | null;
}

const FILES = [...filesIn('machines', /\.ts$/), ...filesIn('src', /\.tsx?$/)];
const EDGES: readonly Edge[] = FILES.flatMap((from) =>
  importsOf(parse(from)).map((name) => ({ from, name, to: targetOf(from, name) })),
);

const layerOf = (path: string): string => {
  const [top = '', second = ''] = path.split('/');
  return top === 'src' ? second.replace(/\.tsx?$/, '') : top;
};

const leavesTable = ({ from, to }: Edge): boolean => {
  if (to === null) return false;
  const [own, other] = [layerOf(from), layerOf(to)];
  return own !== other && MAY_IMPORT[own]?.includes(other) !== true;
};

describe('layers', () => {
  test('every folder of sources is a layer of the table', () => {
    expect(FILES.map(layerOf).filter((layer) => MAY_IMPORT[layer] === undefined)).toEqual([]);
  });

  test('every import of ours leads to a file of ours', () => {
    const files = new Set(FILES);
    expect(EDGES.filter(({ to }) => to !== null && !files.has(to))).toEqual([]);
  });

  test('a layer imports only what the table allows, or a departure that is written down', () => {
    const found = EDGES.filter(leavesTable).map(({ from, to }) => `${from} -> ${to ?? ''}`);
    expect([...new Set(found)].sort()).toEqual(Object.keys(DEPARTURES).sort());
  });

  // What the page imports travels to a browser: only the vocabulary that has no packages and no schemas may.
  test('the page takes of the contract only what is written for it', () => {
    const written = [
      'canonical-json',
      'entry-name',
      'inspection/call-coverage',
      'inspection/missing-comparisons',
      'inspection/chart-text',
      'inspection/event-row',
      'inspection/field-author',
      'inspection/inspection',
      'inspection/needs-approval',
      'run/phase',
      'run/run-state',
      'session/step-packet',
    ];
    const found = EDGES.filter(({ from, to }) => layerOf(from) === 'inspector' && to?.startsWith('src/core/contract/'));
    const others = found.filter(({ to }) => !written.some((name) => to === `src/core/contract/${name}.ts`));
    expect(others).toEqual([]);
    expect(
      EDGES.filter(({ from, to }) => layerOf(from) !== 'inspector' && to?.startsWith('src/interfaces/inspector/page/')),
    ).toEqual([]);
  });

  test('the engine is used by its port: only its factories import the class', () => {
    const importersOf = (path: string) => EDGES.filter(({ to }) => to === path).map(({ from }) => from);
    const factories = ['src/engine/embedded.ts', 'src/engine/shared.ts'];
    expect(importersOf('src/engine/ledger-engine.ts')).toEqual(factories);
    // A restore settles a ledger that nothing else has open, and executes nothing.
    const importers = ['src/features/backup/record-restore.ts', 'src/host/wire.ts'];
    for (const factory of factories) expect(importersOf(factory)).toEqual(importers);
  });

  test('nothing imports tests or documents', () => {
    expect(EDGES.filter(({ to, name }) => /^(?:test|docs)\//.test(to ?? '') || /^@?jest\b/.test(name))).toEqual([]);
  });

  test('no file imports itself through others', () => {
    expect(cycles(EDGES)).toEqual([]);
  });
});

describe('third-party packages', () => {
  const packageOf = (name: string): string =>
    name
      .split('/')
      .slice(0, name.startsWith('@') ? 2 : 1)
      .join('/');
  const isPackage = ({ to, name }: Edge): boolean => to === null && !name.startsWith('node:');

  test('each is imported only from its home', () => {
    const strangers = EDGES.filter(isPackage).filter(({ from, name }) => {
      return HOMES[packageOf(name)]?.some((home) => from.startsWith(home)) !== true;
    });
    expect(strangers).toEqual([]);
  });

  test('no home is empty', () => {
    const empty = Object.entries(HOMES).flatMap(([name, homes]) =>
      homes.filter((home) => !EDGES.some((edge) => edge.from.startsWith(home) && packageOf(edge.name) === name)),
    );
    expect(empty).toEqual([]);
  });

  test('Node modules are named with their scheme', () => {
    const bare = /^(?:fs|path|os|crypto|child_process|http|net|util|url|events|stream|buffer)(?:\/|$)/;
    expect(EDGES.filter(({ name }) => bare.test(name))).toEqual([]);
  });
});

/** Every import that leads back to a file from which one came, as `a -> b`. */
function cycles(edges: readonly Edge[]): readonly string[] {
  const next = new Map<string, readonly string[]>();
  for (const { from, to } of edges) if (to !== null) next.set(from, [...(next.get(from) ?? []), to]);
  const found: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  const visit = (file: string): void => {
    state.set(file, 'open');
    for (const to of next.get(file) ?? []) {
      if (state.get(to) === 'open') found.push(`${file} -> ${to}`);
      else if (state.get(to) === undefined) visit(to);
    }
    state.set(file, 'done');
  };
  for (const file of next.keys()) if (state.get(file) === undefined) visit(file);
  return found;
}
