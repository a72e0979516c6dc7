// What a release has to be: its size, its files, its types for every resolver, and its bill of materials.
// `npm run check:package`, after a build. Ends with exit code 1 and every problem.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deadLinks, isDocument, restoreDocuments, rewriteDocuments } from './packed-documents.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OUT = join(ROOT, 'build/package');
const BYTES_MAX = 1_500_000;
/** Everything that the tarball may contain. */
const SHIPPED = [
  /^dist\/(?:src|machines)\/.*\.(?:js|d\.ts)$/,
  /^dist\/src\/stores\/postgres\/sql\/[\w-]+\.sql$/,
  /^dist\/inspector\//,
  /^dist\/(?:charts\.json|help\.json|hook\.mjs|licenses\.txt|turnpike\.1)$/,
  // docs/.npmignore leaves out what only works in a checkout.
  /^docs\/(?!(?:decisions|pictures|examples\/(?:cluster|demo)|how-to\/source)\/|(?:architecture|contributing|performance|explanation\/extending)\.md)/,
  /^policies\//,
  /^(?:Dockerfile|packaging\/(?:turnpike\.service|opencode\/turnpike\.js))$/,
  /^src\/names\/tables\/LICENSE$/,
  /^(?:README|SECURITY)\.md$/,
  /^(?:LICENSE|llms\.txt|package\.json)$/,
];
/** What a user looks for. */
const REQUIRED = [
  'dist/src/index.js',
  'dist/src/index.d.ts',
  'dist/src/interfaces/cli/main.js',
  'docs/examples/ten-lines.mjs',
];

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const problems = [];

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
// As npm does it with the scripts of the package, of which one would build it again.
rewriteDocuments();
let packed;
let documents;
try {
  [packed] = JSON.parse(run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', OUT]));
  const found = packed.files.map(({ path }) => path).filter(isDocument);
  documents = new Map(found.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
} finally {
  restoreDocuments();
}
const paths = packed.files.map(({ path }) => path);
const tarball = join(OUT, packed.filename);

if (packed.size > BYTES_MAX) problems.push(`the tarball has ${packed.size} bytes, more than ${BYTES_MAX}`);
for (const path of paths) {
  if (!SHIPPED.some((pattern) => pattern.test(path))) problems.push(`${path} should not be in the tarball`);
}
for (const path of packageFiles()) {
  // The code also finds what the build has written to the output folder.
  if (!paths.some((packed) => packed.startsWith(path) || packed.startsWith(`dist/${path}`)))
    problems.push(`${path} is read by the code and not in the tarball`);
}
for (const path of REQUIRED) if (!paths.includes(path)) problems.push(`${path} is not in the tarball`);
problems.push(...deadLinks(documents, paths).map((link) => `a dead link in the tarball: ${link}`));
if (manifest.repository?.url === undefined) problems.push('package.json has no repository');

requireEntryPoints();
const installed = installAsUser();
check('attw', ['--profile', 'esm-only', tarball]);
check('publint', [tarball, '--strict']);
const components = billOfMaterials();
console.log(
  `${packed.filename}: ${packed.size} bytes, ${paths.length} files; ${components} components in the bill of materials; ` +
    `npm installs ${installed} packages on Node ${process.versions.node}`,
);
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

/** What the code reads from the package at run time: the arguments of `packageFile`, up to what is computed. */
function packageFiles() {
  const texts = readdirSync(join(ROOT, 'src'), { recursive: true })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(ROOT, 'src', name), 'utf8'));
  const found = texts.flatMap((text) => [...text.matchAll(/packageFile\(['`]([^'`$]+)/g)].map(([, path]) => path));
  if (found.length === 0) problems.push('no file of src reads a file of the package: the search is wrong');
  return [...new Set(found)];
}

/** CommonJS can require every entry point (decision 0039): none of them may await at its top level. */
function requireEntryPoints() {
  for (const [name, { default: path }] of Object.entries(manifest.exports)) {
    if (path === undefined) continue;
    const { status, stderr } = spawnSync(process.execPath, ['-e', `require(${JSON.stringify(join(ROOT, path))})`], {
      encoding: 'utf8',
    });
    if (status !== 0) problems.push(`${name} cannot be required: ${/^.*Error.*$/m.exec(stderr)?.[0] ?? stderr}`);
  }
}

/**
 * Installs the archive in an empty folder, as a user does. npm resolves the dependencies there without overrides and
 * lock file, so a dependency that does not want this Node shows itself as EBADENGINE.
 * @returns the number of packages
 */
function installAsUser() {
  const folder = join(OUT, 'installed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const args = ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', tarball];
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' });
  const complaints = stderr.split('\n').filter((line) => /EBADENGINE|ERESOLVE|deprecated/.test(line));
  if (status !== 0) problems.push(`npm install of the tarball ended with ${status}: ${stderr}`);
  else problems.push(...complaints.map((line) => `npm install of the tarball prints: ${line}`));
  rmSync(folder, { recursive: true, force: true });
  return Number(/added (\d+) packages/.exec(stdout)?.[1] ?? 0);
}

/**
 * Writes the bill of materials (CycloneDX): every package that is installed with this one, or whose code it contains.
 * @returns the number of components
 */
function billOfMaterials() {
  const all = JSON.parse(run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']));
  const bundled = JSON.parse(readFileSync(join(ROOT, 'build/bundled-packages.json'), 'utf8'));
  const roots = [...new Set([...Object.keys(manifest.dependencies), ...bundled])];
  const own = all.metadata.component['bom-ref'];
  const dependsOn = new Map(all.dependencies.map((entry) => [entry.ref, entry.dependsOn ?? []]));
  const nameOf = new Map(all.components.map((component) => [component['bom-ref'], component.name]));
  const found = new Set(dependsOn.get(own).filter((ref) => roots.includes(nameOf.get(ref))));
  for (const ref of found) for (const next of dependsOn.get(ref) ?? []) found.add(next);
  const components = all.components
    .filter((component) => found.has(component['bom-ref']) || bundled.includes(component.name))
    .map((component) => ({ ...component, scope: undefined, properties: undefined }));
  const kept = new Set(components.map((component) => component['bom-ref']));
  const dependencies = all.dependencies
    .filter(({ ref }) => ref === own || kept.has(ref))
    .map(({ ref, dependsOn: refs = [] }) => ({ ref, dependsOn: refs.filter((next) => kept.has(next)) }));
  const bill = { ...all, components, dependencies };
  writeFileSync(join(OUT, 'sbom.cdx.json'), `${JSON.stringify(bill, null, 2)}\n`);
  if (bill.bomFormat !== 'CycloneDX') problems.push('the bill of materials is not in the format CycloneDX');
  for (const name of roots) {
    const component = components.find((candidate) => candidate.name === name);
    if (component?.licenses === undefined) problems.push(`the bill of materials lacks ${name}, or its licence`);
  }
  return components.length;
}

function check(tool, args) {
  const { status, stdout, stderr } = spawnSync(join(ROOT, 'tools/ci/node_modules/.bin', tool), args, {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (status !== 0) problems.push(`${tool}: ${stdout}${stderr}`);
}

function run(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`);
  return stdout;
}
