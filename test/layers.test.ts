// Who may import whom. The tables are the rule; sources are read with the TypeScript parser, types count as imports.

import { describe, expect, test } from '@jest/globals';
import { exportsOfFeature, OPTIONAL_FEATURES, PUBLIC_ENTRIES, REGISTRY, SERVICE_LISTS } from './optional-features.js';
import { filesIn, importsOf, isAddedToInterfaces, isOfPage, parse, targetOf, textOf } from './sources.js';

/** What a folder may import besides itself. A feature may never import another feature. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  names: ['core'],
  machines: ['core'],
  kernel: ['core', 'machines'],
  engine: ['core', 'kernel'],
  system: ['core', 'engine'],
  stores: ['core', 'names', 'engine', 'system'],
  sandbox: ['core', 'engine', 'system'],
  runtime: ['core', 'names', 'machines', 'kernel', 'engine', 'system'],
  home: ['core', 'engine', 'system', 'stores', 'runtime'],
  features: ['core', 'names', 'machines', 'kernel', 'engine', 'system', 'stores', 'sandbox', 'runtime', 'home'],
  host: ['core', 'names', 'kernel', 'engine', 'system', 'stores', 'sandbox', 'runtime', 'home', 'features'],
  interfaces: [
    'core',
    'names',
    'kernel',
    'engine',
    'system',
    'stores',
    'sandbox',
    'runtime',
    'home',
    'features',
    'host',
  ],
  published: ['core', 'machines', 'kernel', 'engine', 'features'],
  index: ['core', 'system', 'stores', 'sandbox', 'runtime', 'home', 'host'],
};

/** Where each third-party package may be imported: a file, or everything below a folder. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  // The module of a service, which the operator names.
  'something computed': ['src/system/files/load-module.ts'],
  xstate: [
    'machines/',
    'src/features/sessions/machine/',
    'src/kernel/',
    'src/interfaces/inspector/xstate/inspection-hub.ts',
    'src/interfaces/inspector/xstate/stately-observer.ts',
  ],
  ws: ['src/interfaces/inspector/xstate/xstate-inspect.ts'],
  typebox: [
    'src/core/',
    'src/features/',
    'src/home/',
    'src/host/',
    'src/runtime/',
    'src/interfaces/http/',
    'src/interfaces/mcp/',
    'src/interfaces/restate/',
    'src/interfaces/sdk/sdk-tool.ts',
  ],
  'better-sqlite3': ['src/stores/sqlite/sqlite-binding.ts'],
  kysely: ['src/stores/records/'],
  '@cedar-policy/cedar-wasm': ['src/features/conditions/cedar.ts'],
  pg: ['src/stores/postgres/', 'src/stores/records/postgres-backend.ts'],
  '@restatedev/restate-sdk': ['src/interfaces/restate/'],
  jose: ['src/features/identity/provider/signed-token.ts'],
  'smol-toml': ['src/features/hooks/clients/read-settings.ts'],
  winston: ['src/system/winston-log.ts'],
  nanoid: ['src/system/nanoid-ids.ts'],
  yaml: ['src/core/policy/files/strict-yaml.ts'],
  yauzl: ['src/features/exports/bag/bag-zip.ts'],
  'libphonenumber-js': ['src/features/promotions/identifying-data.ts'],
  ibantools: ['src/features/promotions/identifying-data.ts'],
  ai: ['src/interfaces/sdk/ai-sdk-agent.ts', 'src/interfaces/sdk/ai-sdk.ts'],
  '@langchain/core': ['src/interfaces/sdk/langchain.ts'],
  '@langchain/langgraph': ['src/interfaces/sdk/langchain.ts'],
  preact: ['src/interfaces/inspector/page/', 'src/features/hooks/page/', 'src/features/sessions/page/'],
  '@preact/signals': ['src/interfaces/inspector/page/'],
  elkjs: ['src/interfaces/inspector/layout-worker.ts'],
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
  'eventsource-parser': ['src/features/upstreams/mcp/http-messages.ts'],
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

/** The folder of the table that a file belongs to. */
const layerOf = (path: string): string => {
  if (isAddedToInterfaces(path)) return 'interfaces';
  const [top = '', second = ''] = path.split('/');
  return top === 'src' ? second.replace(/\.tsx?$/, '') : top;
};

const featureOf = (path: string): string | null => /^src\/features\/([^/]+)\//.exec(path)?.[1] ?? null;

const breaksTable = ({ from, to }: Edge): boolean => {
  if (to === null || from === REGISTRY || SERVICE_LISTS.includes(from)) return false;
  const isOtherFeature = featureOf(from) !== null && featureOf(to) !== null && featureOf(from) !== featureOf(to);
  const isAdded = isAddedToInterfaces(to) && featureOf(from) !== featureOf(to);
  const [own, other] = [layerOf(from), layerOf(to)];
  return isOtherFeature || isAdded || (own !== other && MAY_IMPORT[own]?.includes(other) !== true);
};

describe('layers', () => {
  test('every folder of sources is a layer of the table', () => {
    expect(FILES.map(layerOf).filter((layer) => MAY_IMPORT[layer] === undefined)).toEqual([]);
  });

  test('every import of ours leads to a file of ours', () => {
    const files = new Set(FILES);
    expect(EDGES.filter(({ to }) => to !== null && !files.has(to))).toEqual([]);
  });

  test('a file imports only what the table allows to its folder, and a feature no other feature', () => {
    const found = EDGES.filter(breaksTable).map(({ from, to }) => `${from} -> ${to ?? ''}`);
    expect([...new Set(found)].sort()).toEqual([]);
  });

  test('only lists of features import an optional feature, and only an entry of the package exports from one', () => {
    const named = EDGES.filter(({ from, to }) => {
      const feature = featureOf(to ?? '');
      const isListed = from === REGISTRY || SERVICE_LISTS.includes(from);
      return feature !== null && OPTIONAL_FEATURES.includes(feature) && featureOf(from) !== feature && !isListed;
    });
    const exported = PUBLIC_ENTRIES.flatMap((from) =>
      OPTIONAL_FEATURES.flatMap((feature) => exportsOfFeature(parse(from), feature)).map(() => from),
    );
    expect(named.map(({ from }) => from)).toEqual(exported);
  });

  test('a file of features belongs to a feature', () => {
    expect(
      FILES.filter(
        (path) =>
          layerOf(path) === 'features' &&
          featureOf(path) === null &&
          path !== REGISTRY &&
          !SERVICE_LISTS.includes(path),
      ),
    ).toEqual([]);
  });

  test('no folder may import everything, and every entry of the table is in use', () => {
    const used = new Set(EDGES.flatMap(({ from, to }) => (to === null ? [] : [`${layerOf(from)} -> ${layerOf(to)}`])));
    const listed = Object.entries(MAY_IMPORT).flatMap(([own, others]) => others.map((other) => `${own} -> ${other}`));
    expect(listed.filter((pair) => !used.has(pair))).toEqual([]);
  });

  // What the page imports travels to a browser: only the vocabulary that has no packages and no schemas may.
  test('the page takes of the contract only what is written for it', () => {
    const written = [
      'entry-name',
      'inspection/inspection',
      'inspection/needs-approval',
      'json',
      'run/phase',
      'run/run-context',
    ];
    const found = EDGES.filter(({ from, to }) => isOfPage(from) && to?.startsWith('src/core/contract/'));
    const others = found.filter(({ to }) => !written.some((name) => to === `src/core/contract/${name}.ts`));
    expect(others).toEqual([]);
    // Of JSON it writes canonical text, and parses nothing with the ledger's own parser.
    const names = FILES.filter(isOfPage).flatMap((path) =>
      parse(path)
        .statements.map((node) => node.getText())
        .filter((text) => /^import[^;]*\/contract\/json\.js'/.test(text))
        .map((text) => /\{ (.*) \}/.exec(text)?.[1]),
    );
    expect(names).toEqual(['canonicalJson']);
    expect(EDGES.filter(({ from, to }) => !isOfPage(from) && to !== null && isOfPage(to))).toEqual([]);
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
    expect(cycles(EDGES.filter(({ from }) => from !== REGISTRY))).toEqual([]);
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

  test('only turnpike/telemetry loads the OpenTelemetry API: no other entry of the package does', () => {
    // In the build, this file has its packages inside.
    const bundled = 'src/features/telemetry/otel/sdk-telemetry.ts';
    const edgesOf = new Map(FILES.map((path) => [path, EDGES.filter(({ from }) => from === path)]));
    const loads = (entry: string): boolean => {
      const reached = new Set([entry]);
      for (const path of reached) {
        for (const { name, to } of path === bundled ? [] : (edgesOf.get(path) ?? [])) {
          if (to !== null) reached.add(to);
          else if (name.startsWith('@opentelemetry/')) return true;
        }
      }
      return false;
    };
    const { exports } = JSON.parse(textOf('package.json')) as { exports: Record<string, { default?: string }> };
    const entries = Object.entries(exports)
      .map(([name, { default: file = '' }]) => [name, file.replace('./dist/', '').replace(/\.js$/, '.ts')] as const)
      .filter(([, path]) => FILES.includes(path));
    expect(entries.length).toBeGreaterThan(8);
    expect(entries.filter(([, path]) => loads(path)).map(([name]) => name)).toEqual(['./telemetry']);
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
