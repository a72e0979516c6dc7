// The package in few files, as the last step of the build. `tsc` compiles every file into build/compiled; this joins
// what the entry points of package.json reach into dist. To find and load a thousand files takes a process three times
// as long as most commands then need, and the library and the command share what they have in common.

import { build } from 'esbuild';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleDeclarations } from './bundle-declarations.mjs';
import { bundleHook } from './bundle-hook.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COMPILED = join(ROOT, 'build/compiled');
const OUT = join(ROOT, 'dist');
const { exports, bin, dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/**
 * Bundled, because nearly every command needs them at once. The other dependencies are loaded where they are needed.
 */
const BUNDLED = ['nanoid', 'typebox', 'yaml'];
const OUTSIDE = [...Object.keys(dependencies), ...Object.keys(peerDependencies)].filter(
  (name) => !BUNDLED.includes(name),
);

/** CommonJS in a file of ES modules finds by this what it requires. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

/**
 * The OpenTelemetry SDK with the API that it uses: those who do not install the API have the metrics and the command
 * too (decision 0049).
 */
const SDK = join(ROOT, 'build/sdk-telemetry.js');
const SERIALIZER = join(ROOT, 'node_modules/@opentelemetry/exporter-prometheus/build/src/PrometheusSerializer.js');
/**
 * The serializer for Prometheus without the server of its package, and of what it requires only the names that it uses.
 * Its CommonJS would otherwise bring all of its packages, 100 kB of names of attributes among them.
 */
const serializerOnly = {
  name: 'serializer-only',
  setup: (bundle) => {
    const text = readFileSync(SERIALIZER, 'utf8');
    const used = new Map(
      [...text.matchAll(/const (\w+) = require\("(@[^"]+)"\)/g)].map(([, variable, name]) => [
        name,
        new Set([...text.matchAll(new RegExp(`\\b${variable}\\.(\\w+)`, 'g'))].map(([, member]) => member)),
      ]),
    );
    bundle.onResolve({ filter: /^@opentelemetry\/exporter-prometheus$/ }, () => ({ path: SERIALIZER }));
    bundle.onResolve({ filter: /^@/ }, ({ path, importer, kind }) =>
      importer === SERIALIZER && kind === 'require-call' ? { path, namespace: 'used' } : undefined,
    );
    bundle.onLoad({ filter: /^/, namespace: 'used' }, ({ path }) => ({
      contents: `export { ${[...used.get(path)].join(', ')} } from '${path}';`,
      resolveDir: ROOT,
    }));
  },
};
const { metafile: sdk } = await build({
  absWorkingDir: ROOT,
  entryPoints: [join(COMPILED, 'src/features/telemetry/otel/sdk-telemetry.js')],
  outfile: SDK,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minify: true,
  // The modules of these packages can be left out one by one; their CommonJS cannot.
  mainFields: ['module', 'main'],
  plugins: [serializerOnly],
  logLevel: 'warning',
  metafile: true,
});
const withSdk = {
  name: 'with-sdk',
  setup: (bundle) => bundle.onResolve({ filter: /\/sdk-telemetry\.js$/ }, () => ({ path: SDK })),
};

/**
 * The constructors of types one by one: of a namespace that is a default export, esbuild keeps everything, a parser of
 * TypeScript included.
 */
const DEFAULT_IMPORT = /^import Type\b.* from 'typebox';$/m;
let defaultImports = 0;
const usedTypes = {
  name: 'used-types',
  setup: (bundle) =>
    bundle.onLoad({ filter: /\/build\/compiled\/.*\.js$/ }, ({ path }) => {
      const text = withGroups(path, readFileSync(path, 'utf8'));
      if (DEFAULT_IMPORT.test(text)) defaultImports += 1;
      return { contents: text.replace(DEFAULT_IMPORT, "import * as Type from 'typebox';") };
    }),
};

const targets = Object.values(exports).filter((target) => target.default !== undefined);
const fromDist = (path) => relative('dist', path);
const entries = [...targets.map((target) => target.default), bin.turnpike].map(fromDist);

/**
 * What is loaded at the same time is one module: all commands of features, and what the host loads of one feature through
 * the registry, which awaits it. The registry does not await what takes part in trees, and the inspector loads views.
 * Otherwise each of them would have files of its own, and so would everything that only some of them share.
 */
const LOADED_TOGETHER = [
  /import\('(\.\/[\w-]+\/(commands)\/[\w-]+\.js)'\)/g,
  /(?<=await )import\('(\.\/([\w-]+)\/(?!commands\/|views\/)[\w/-]+\.js)'\)/g,
].map((pattern) => ({ path: join(COMPILED, 'src/features/declare-features.js'), pattern }));
/** By their group, before the bundler loads the first of them. */
const groups = new Map();
for (const { path, pattern } of LOADED_TOGETHER) {
  for (const [, module, group] of readFileSync(path, 'utf8').matchAll(pattern)) {
    groups.set(group, (groups.get(group) ?? new Set()).add(join(dirname(path), module)));
  }
}
const withGroups = (path, text) => {
  const patterns = LOADED_TOGETHER.filter((file) => file.path === path).map(({ pattern }) => pattern);
  return patterns.reduce(
    (rest, pattern) => rest.replaceAll(pattern, (_call, _module, group) => `import('loaded-together:${group}')`),
    text,
  );
};
const loadedTogether = {
  name: 'loaded-together',
  setup: (bundle) => {
    bundle.onResolve({ filter: /^loaded-together:/ }, ({ path }) => ({
      path: path.split(':')[1],
      namespace: 'loaded-together',
    }));
    bundle.onLoad({ filter: /^/, namespace: 'loaded-together' }, ({ path }) => {
      const modules = [...groups.get(path)];
      const names = modules.flatMap((module) =>
        [...readFileSync(module, 'utf8').matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)].map(
          ([, name]) => name,
        ),
      );
      if (new Set(names).size < names.length) throw new Error(`two modules of ${path} export one name: ${names}`);
      return { contents: modules.map((module) => `export * from '${module}';`).join('\n'), resolveDir: ROOT };
    });
  },
};

for (const folder of ['src', 'machines']) rmSync(join(OUT, folder), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: entries.map((path) => join(COMPILED, path)),
  outbase: COMPILED,
  outdir: OUT,
  // As deep as the entry point of the command: files find what the package ships by paths from themselves.
  chunkNames: 'src/chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  minify: true,
  // Node prints the line that throws in front of an uncaught error. Shorter lines cost more bytes than they save
  // reading.
  lineLimit: 1000,
  external: OUTSIDE.flatMap((name) => [name, `${name}/*`]),
  plugins: [withSdk, loadedTogether, usedTypes],
  banner: { js: REQUIRE },
  logLevel: 'warning',
  metafile: true,
});
// The code reads them when it creates a ledger.
cpSync(join(ROOT, 'src/stores/postgres/sql'), join(OUT, 'src/stores/postgres/sql'), { recursive: true });
for (const path of Object.keys(metafile.outputs)) withoutUnusedRequire(join(ROOT, path));
if (defaultImports === 0) throw new Error('no file imports typebox as it was: the bundle would have all of it');
const hook = await bundleHook();
if (hook !== null) writeFileSync(join(OUT, 'hook.mjs'), hook);
const packages = bundledPackages([...Object.keys(metafile.inputs), ...Object.keys(sdk.inputs)]);
writeFileSync(join(ROOT, 'build/bundled-packages.json'), JSON.stringify(packages.map(({ name }) => name)));
writeFileSync(join(OUT, 'licenses.txt'), licensesOf(packages));
const declared = targets.map((target) => fromDist(target.types));
bundleDeclarations(COMPILED, declared, OUT);

/** esbuild puts the banner into every file, and few have CommonJS. */
function withoutUnusedRequire(path) {
  const text = readFileSync(path, 'utf8').replace(`${REQUIRE}\n`, '');
  if (!/\brequire\b/.test(text)) writeFileSync(path, text);
}

/** The packages whose code is part of the bundle. */
function bundledPackages(inputs) {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  return [...folders].toSorted().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
    const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : readFileSync(join(ROOT, folder, file), 'utf8').trim();
    return { name, version, license, text };
  });
}

function licensesOf(all) {
  return `This package contains code of these packages.\n\n${all
    .map(({ name, version, license, text }) => `${name} ${version} (${license})\n\n${text}`.trim())
    .join('\n\n---\n\n')}\n`;
}
