// Prints what users, agents and other programs can name of this version: `npm run surface`. One line for each command,
// option, route, tool, code, rule, key, variable and export, sorted. Two versions are compared by these lines;
// test/surface.campaign.test.ts compares the present ones with test/fixtures/surface.txt.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** The compiled modules, of which the build makes the bundles in `dist`. */
const COMPILED = join(ROOT, 'build/compiled');
/** All modules that this program loads: where a file moves, only this table and the next one change. */
const MODULES = {
  commands: 'src/interfaces/cli/turnpike-command.js',
  command: 'src/interfaces/cli/command.js',
  templates: 'src/interfaces/cli/templates.js',
  commandKeys: 'src/interfaces/cli/configuration/read-configuration.js',
  configurationKey: 'src/host/configuration/configuration-key.js',
  configuration: 'src/host/configuration/turnpike-configuration.js',
  clientSecret: 'src/features/identity/provider/code-exchange.js',
  routes: 'src/interfaces/http/routes/system-routes.js',
  pageLogin: 'src/features/identity/service/page-login.js',
  adminHandler: 'src/interfaces/http/admin/serve-admin.js',
  mcpHttp: 'src/interfaces/mcp/serve-http.js',
  mcpOffer: 'src/interfaces/mcp/offer.js',
  features: 'src/features/declare-features.js',
  featureTools: 'src/features/feature-tools.js',
  control: 'src/host/control/control-messages.js',
  dialects: 'src/features/hooks/dialects.js',
  catalogue: 'src/core/contract/policy/catalogue.js',
  actions: 'src/core/contract/policy/catalogue.js',
  recordActions: 'src/core/contract/policy/catalogue.js',
  schemas: 'src/published/schema-documents.js',
  upstreams: 'src/core/contract/policy/upstreams.js',
  overlay: 'src/core/contract/policy/overlay.js',
  counters: 'src/features/conditions/counters/counters-policy.js',
  policyTest: 'src/features/simulation/policy-test-file.js',
  faults: 'src/core/contract/fault.js',
  problems: 'src/interfaces/service/problems.js',
  session: 'src/features/sessions/contract/session.js',
  sessionAnswer: 'src/features/sessions/contract/session-answer.js',
  effect: 'src/core/contract/run/effect.js',
  entry: 'src/published/contract.js',
  runState: 'src/core/contract/run/run-context.js',
  verdict: 'src/core/policy/verdict.js',
  approval: 'src/core/contract/run/approval-rules.js',
  lint: 'src/features/policy-lint/lint-rules.js',
  findings: 'src/core/policy/files/policy-finding.js',
  spec: 'src/features/sessions/rules/spec/check-spec.js',
  bagRules: 'src/features/exports/bagit/bag-finding.js',
  bundleRules: 'src/features/exports/verify/bag-report.js',
};
/** Declarations with unions of literals for which no value exists at run time. */
const DECLARATIONS = {
  errors: 'src/core/errors.d.ts',
  exitCode: ['src/interfaces/cli/command.d.ts', 'ExitCode'],
  jsonProblem: ['src/core/contract/json.d.ts', 'JsonProblem'],
  ledgerRule: ['src/core/ledger/verification/ledger-problem.d.ts', 'LedgerRule'],
};
/** Rules that stand as literals in the code. test/docs/errors.test.ts compares these tables with the code. */
const DOCUMENT = 'docs/errors.md';
const DOCUMENTED = { 'step-rules': 'step-rule', 'replay-rules': 'replay-rule' };
/** Addresses outside the tables of routes. Each is printed if a handler of the build knows it. */
const ADMIN_PATHS = ['/livez', '/readyz', '/metrics'];
const LOGIN_PATHS = ['/auth/login', '/auth/callback', '/auth/logout', '/auth/session'];

if (!existsSync(join(COMPILED, MODULES.commands))) throw new Error('there is no build: run `npm run build` first');
const load = (path) => import(join(COMPILED, path));
const code = Object.fromEntries(
  await Promise.all(Object.entries(MODULES).map(async ([name, path]) => [name, await load(path)])),
);

const commandLines = () => {
  const { COMMANDS } = code.commands;
  const optionLine = (owner) => (option) =>
    `${owner} --${option.name}${option.value === undefined ? '' : ` ${option.value}`}`;
  return [
    ...COMMANDS.map(({ name, operands }) => `command ${name}${operands.usage === '' ? '' : ` ${operands.usage}`}`),
    ...COMMANDS.flatMap(({ name, options }) => options.map(optionLine(`command-option ${name}`))),
    ...code.command.COMMON_OPTIONS.map(optionLine('common-option')),
    ...literals(...DECLARATIONS.exitCode).map((exit) => `exit-code ${exit}`),
    ...Object.keys(code.templates.TEMPLATES).map((name) => `template ${name}`),
  ];
};

const configurationLines = () => {
  const { keyText, variableOf } = code.configurationKey;
  const keys = code.commandKeys.configurationKeys(code.commands.COMMANDS);
  return [
    ...keys.map((key) => `configuration-key ${keyText(key)}`),
    ...keys.map((key) => `variable ${variableOf(key)}`),
    `variable ${code.configuration.CONFIGURATION_VARIABLE}`,
    `variable ${code.clientSecret.CLIENT_SECRET_VARIABLE}`,
  ];
};

const routeLines = () =>
  code.routes.ROUTES.flatMap(({ method, path, head, rights, params, query, body, headers, responses }) => [
    ...(head ? [method, 'HEAD'] : [method]).map((each) => `route ${each} ${path}`),
    ...rights.map((right) => `route-right ${method} ${path} ${right}`),
    ...keysOf(params).map((key) => `route-parameter ${method} ${path} ${key}`),
    ...keysOf(query).map((key) => `route-query ${method} ${path} ${key}`),
    ...headers.map((name) => `route-header ${method} ${path} ${name}`),
    ...keysOf(body ?? {}).map((key) => `route-body ${method} ${path} ${key}`),
    ...Object.entries(responses).flatMap(([status, { schema = {} }]) => [
      `route-status ${method} ${path} ${status}`,
      ...keysOf(schema).map((key) => `route-response ${method} ${path} ${status} ${key}`),
    ]),
  ]);

async function addressLines() {
  const handler = new code.adminHandler.AdminHandler({ now: () => 0, monotonic: () => 0 }, { error: () => undefined });
  const statusOf = (url) =>
    new Promise((resolve) => {
      const response = { writeHead: resolve, end: () => undefined };
      void handler.handle({ method: 'PUT', url, headers: {} }, response);
    });
  const admin = [];
  for (const path of ADMIN_PATHS) if ((await statusOf(path)) !== 404) admin.push(path);
  const login = LOGIN_PATHS.filter((path) => code.pageLogin.isLoginPath(path));
  return [...admin, ...login, code.mcpHttp.MCP_PATH].map((path) => `address ${path}`);
}

const toolLines = () => {
  const catalogue = code.catalogue.createCatalogue(code.catalogue.NO_REGISTRATIONS);
  const names = [...code.actions.ACTION_NAMES, ...Object.keys(code.recordActions.RECORD_ACTIONS)];
  const policy = { actions: new Map(names.map((name) => [name, {}])), lanes: new Map(), catalogue };
  const added = code.featureTools.FEATURE_TOOLS.flatMap((open) =>
    open({ turnpike: {}, agent: {}, principal: null, options: {} }),
  );
  const { tools } = code.mcpOffer.createOffer(policy, '', { added, newRuns: true });
  return [
    ...names.map((name) => `action ${name}`),
    ...tools.flatMap(({ name, inputSchema, outputSchema }) => [
      `mcp-tool ${name}`,
      ...keysOf(inputSchema).map((key) => `mcp-input ${name} ${key}`),
      ...keysOf(outputSchema).map((key) => `mcp-output ${name} ${key}`),
    ]),
    ...Object.keys(code.control.CONTROL_OPERATIONS)
      .concat(code.features.FEATURES.flatMap(({ inHost }) => Object.keys(inHost?.requests ?? {})))
      .map((op) => `control-request ${op}`),
    ...Object.keys(code.dialects.DIALECTS).map((name) => `hook-client ${name}`),
  ];
};

const codeLines = () => {
  const { FAULTS, POLICY_CAUSES, ARGUMENT_CAUSES, EXECUTION_CAUSES } = code.faults;
  return [
    ...Object.entries(FAULTS).map(
      ([name, { outcome, phase, message }]) => `fault ${name} ${outcome} ${phase} ${message}`,
    ),
    ...Object.entries(POLICY_CAUSES).map(([cause, text]) => `policy-cause ${cause} ${text}`),
    ...Object.entries(ARGUMENT_CAUSES).map(([cause, text]) => `argument-cause ${cause} ${text}`),
    ...Object.entries(EXECUTION_CAUSES).map(
      ([cause, { message, retryable }]) => `execution-cause ${cause} ${retryable ? 'retryable' : 'final'} ${message}`,
    ),
    ...Object.entries(code.problems.PROBLEMS).map(([name, [status, text]]) => `problem ${name} ${status} ${text}`),
    ...Object.entries(code.sessionAnswer.SESSION_ERRORS).map(
      ([name, { type, message }]) => `session-error ${name} ${type} ${message}`,
    ),
    ...codedErrors(),
    ...code.runState.RUN_STATES.map((state) => `run-state ${state}`),
    ...code.runState.RUN_KINDS.map((kind) => `run-kind ${kind}`),
    ...listsOf('session', code.session),
  ];
};

/** The exported lists of words of a module. */
const listsOf = (prefix, module) =>
  Object.entries(module).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((word) => `${prefix}-word ${name} ${word}`) : [],
  );

const ruleLines = () => {
  const named = (kind, table) => (Array.isArray(table) ? table : Object.keys(table)).map((rule) => `${kind} ${rule}`);
  return [
    ...named('lane-rule', code.verdict.RULES),
    ...named('approval-rule', code.approval.APPROVAL_RULES),
    ...named('lint-rule', code.lint.LINT_RULES),
    ...named('policy-finding', code.findings.FINDING_RULES),
    ...named('identity-finding', code.findings.IDENTITY_RULES),
    ...named('spec-finding', code.spec.SPEC_RULES),
    ...named('bag-rule', code.bagRules.BAG_RULES),
    ...named('bundle-rule', code.bundleRules.EXPORT_BAG_RULES),
    ...named('refused-file', code.effect.REFUSED_KINDS),
    ...literals(...DECLARATIONS.jsonProblem).map((problem) => `json-problem ${problem}`),
    ...literals(...DECLARATIONS.ledgerRule).map((rule) => `ledger-rule ${rule}`),
    ...Object.entries(DOCUMENTED).flatMap(([table, kind]) => named(kind, firstColumnOf(table))),
  ];
};

const schemaLines = () => {
  // Entries of the ledger are no surface: formats have versions of their own.
  const documents = code.schemas.SCHEMA_DOCUMENTS.filter(({ name }) => !code.entry.ENTRY_TYPES.includes(name));
  const files = {
    upstreams: code.upstreams.UpstreamsConfig,
    'upstream-pins': code.upstreams.UpstreamPins,
    overlay: code.overlay.SignedOverlay,
    counters: code.counters.CountersPolicy,
    registrations: code.catalogue.Registrations,
    test: code.policyTest.PolicyTest,
  };
  return [
    ...documents.flatMap(({ name, schema }) => keysOf(schema).map((key) => `schema-key ${name} ${key}`)),
    ...Object.entries(files).flatMap(([name, schema]) => keysOf(schema).map((key) => `schema-key ${name} ${key}`)),
  ];
};

/** The paths of all members below a schema: `a.b` is a member, `a[]` an element, `a.*` a value with a free key. */
function keysOf(schema) {
  const found = new Set();
  const visit = (node, path) => {
    for (const each of [...(node.anyOf ?? []), ...(node.allOf ?? [])]) visit(each, path);
    if (node.items !== undefined) visit(node.items, `${path}[]`);
    for (const each of Object.values(node.patternProperties ?? {})) visit(each, `${path}.*`);
    for (const [name, member] of Object.entries(node.properties ?? {})) {
      const at = path === '' ? name : `${path}.${name}`;
      found.add(at);
      visit(member, at);
    }
    if (node.enum !== undefined) for (const value of node.enum) found.add(`${path}=${value}`);
    if (node.const !== undefined) found.add(`${path}=${node.const}`);
  };
  visit(schema, '');
  return [...found];
}

const { exports: EXPORTS } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const ENTRIES = Object.entries(EXPORTS).flatMap(([entry, { types }]) =>
  types === undefined ? [] : [[entry, join(ROOT, types)]],
);
const declared = (path) => join(COMPILED, path);
const program = ts.createProgram(
  [...ENTRIES.map(([, file]) => file), ...Object.values(DECLARATIONS).map((place) => declared([place].flat()[0]))],
  { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, types: ['node'], strict: true, skipLibCheck: true },
);
const checker = program.getTypeChecker();

function exportsOf(file) {
  const source = program.getSourceFile(file);
  if (source === undefined) throw new Error(`${file} is missing: run \`npm run build\` first`);
  return checker.getExportsOfModule(checker.getSymbolAtLocation(source));
}

const exportLines = () =>
  ENTRIES.flatMap(([entry, file]) =>
    exportsOf(file).flatMap((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const type = checker.getDeclaredTypeOfSymbol(target);
      const members = target.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.Class) ? type.getProperties() : [];
      return [
        `export ${entry} ${symbol.name}`,
        ...members
          .filter(({ name, declarations }) => !name.startsWith('__') && isOwn(declarations))
          .map(({ name }) => `export-member ${entry} ${symbol.name}.${name}`),
      ];
    }),
  );

/** Whether this package declares a member, and no package that it extends. */
const isOwn = (declarations = []) =>
  declarations.some((each) => !each.getSourceFile().fileName.includes('/node_modules/'));

/** The values of a union of literals. */
function literals(path, name) {
  const symbol = exportsOf(declared(path)).find((each) => each.name === name);
  if (symbol === undefined) throw new Error(`${path} declares no ${name}`);
  return literalsOf(checker.getDeclaredTypeOfSymbol(symbol));
}
const literalsOf = (type) => (type.isUnion() ? type.types.flatMap(literalsOf) : 'value' in type ? [type.value] : []);

/** The codes of every class of `errors`, from the type of its member `code`. */
function codedErrors() {
  return exportsOf(declared(DECLARATIONS.errors)).flatMap((symbol) => {
    if ((symbol.flags & ts.SymbolFlags.Class) === 0) return [];
    const type = checker.getDeclaredTypeOfSymbol(symbol);
    const member = type.getProperty('code');
    if (member === undefined) return [];
    return literalsOf(checker.getTypeOfSymbol(member)).map((each) => `error ${symbol.name} ${each}`);
  });
}

function firstColumnOf(name) {
  const [, after] = readFileSync(join(ROOT, DOCUMENT), 'utf8').split(`<!-- table: ${name} -->\n`);
  if (after === undefined) throw new Error(`${DOCUMENT} has no table ${name}`);
  const rows = after.split('\n').slice(2);
  const end = rows.findIndex((row) => !row.startsWith('|'));
  return rows.slice(0, end).map((row) => row.split('|')[1].trim());
}

const lines = [
  ...commandLines(),
  ...configurationLines(),
  ...routeLines(),
  ...(await addressLines()),
  ...toolLines(),
  ...codeLines(),
  ...ruleLines(),
  ...schemaLines(),
  ...exportLines(),
];
process.stdout.write(`${[...new Set(lines)].sort().join('\n')}\n`);
