import { valuesOf, presentFiles, type AcceptedCaution } from '../../../core/contract/policy/pins.js';
import { formatLintMessage, LINT_RULE_IDS } from '../lint-rules.js';
import { formatFinding, type PolicyCheck } from '../../../core/policy/files/check-policy.js';
import { buildPolicyMatrix, type MatrixCell } from '../policy-matrix.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type CommandGroup,
} from '../../../interfaces/cli/command.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  displayPath,
  requireValidPolicy,
  type ContractFolder,
  type LoadedPolicy,
} from '../../../interfaces/cli/options/folders.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { escapeText, jsonLine, createPainter, table, type Paint } from '../../../interfaces/cli/text/terminal.js';
import { usageError } from '../../../core/errors.js';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { gitPolicySource } from '../../../home/policy/git-policy-source.js';
import { hasIdentities, identitiesSource } from '../../../home/policy/home-policy.js';
import {
  PIN_MANIFEST,
  pinManifest,
  type PinnableFile,
  readAcceptedCautions,
} from '../../../home/policy/manifest-policy-source.js';
import { policyPaths } from '../../../home/policy/policy-files.js';
import { IDENTITIES_PATH } from '../../../core/contract/policy/identities.js';
import { sha256 } from '../../../core/contract/hash.js';
import type { LintMessage } from '../../../home/policy/policy-linter.js';
import { shippedContract } from '../../../runtime/shipped-contract.js';

/** `turnpike policy check`: reports all findings in a policy, or all that it decides. */
const policyCheck: CliCommand = defineCommand({
  name: 'policy check',
  access: 'none',
  summary: 'Lint a policy: print each finding with file, line and rule; or print what it allows to each role',
  operands: NO_OPERANDS,
  options: [
    { name: 'matrix', help: 'print for every role, lane and action whether it is allowed, and the deciding rule' },
    REGISTRATIONS_OPTION,
  ],
  notes: [
    'Exits 1 if there is a finding, or a lint error that `turnpike policy pin` has not accepted. A file without a',
    'valid pin is not a finding; a warning on stderr names it. --matrix needs a policy without findings. It shows the',
    'decisions for runs with every scope field set and without approvals; `*` stands for all actions that the same',
    'role and lane do not list. `depends` stands for what call rules of the lane or conditions decide by arguments.',
    'With --json: one line for every role, lane and action.',
  ],
  async run(args, io) {
    const contract = findContractFolder(args, io);
    const loaded = await loadContract(contract, io, { registrations: await readRegistrations(args, io) });
    const { files, identities, check } = loaded;
    const accepted = await readEarlierAcceptances(contract.path);
    const cautions = collectLintErrors(loaded, io).map((caution) => ({
      ...caution,
      accepted: findAcceptanceReason(caution, accepted),
    }));
    const { matrix, json } = args.values;
    if (matrix && check.policy !== null) {
      await printMatrix(buildPolicyMatrix(check.policy), json, io);
    } else {
      await printFindings({ ...check, cautions }, json, displayPath(contract.path, io), io);
    }
    const all = [...valuesOf(files), ...(identities === null ? [] : [identities])];
    for (const { path, pin } of all) {
      if (!('problem' in pin)) continue;
      await io.stderr.writeLine(
        `${escapeText(displayPath(path, io))} is not pinned (${pin.problem}): runs are denied until it is committed, or pinned by \`turnpike policy pin\``,
      );
    }
    const errors = cautions.filter(({ severity, accepted: reason }) => severity === 'error' && reason === null);
    return check.findings.length + errors.length === 0 ? 0 : 1;
  },
});

/** A lint error, with the reason for which an operator accepted it, or null. */
interface JudgedLintMessage extends FileLintMessage {
  readonly accepted: string | null;
}
interface CheckFindings extends PolicyCheck {
  readonly cautions: readonly JudgedLintMessage[];
}

async function printFindings({ findings, cautions }: CheckFindings, json: boolean, where: string, { stdout }: Io) {
  for (const finding of findings)
    await stdout.write(json ? jsonLine(finding) : `${escapeText(formatFinding(finding))}\n`);
  for (const caution of cautions) {
    const line = `${formatLintMessage(caution)}${caution.accepted === null ? '' : ` (accepted: ${caution.accepted})`}`;
    await stdout.write(json ? jsonLine(caution) : `${escapeText(line)}\n`);
  }
  if (!json && findings.length + cautions.length === 0)
    await stdout.write(`ok: the policy of ${escapeText(where)} has no findings\n`);
}

async function printMatrix(cells: readonly MatrixCell[], json: boolean, io: Io): Promise<void> {
  if (json) for (const cell of cells) await io.stdout.write(jsonLine(cell));
  else await io.stdout.write(matrixText(cells, createPainter(io.colours)));
}

/** For each role and lane, the most frequent rule is printed once, as `*`. */
function matrixText(cells: readonly MatrixCell[], paint: Paint): string {
  const pairs = groupCells(cells, ({ role_id, lane_id }) => JSON.stringify([role_id, lane_id]));
  const rows = pairs.flatMap((pair) => {
    const common = findCommonDenial(pair);
    const shownCells = pair.filter((cell) => cell.rule_id !== common?.rule_id);
    return common === null ? shownCells : [...shownCells, { ...common, act: '*' }];
  });
  return table(
    rows.map(({ role_id, lane_id, act, decision, rule_id }) => [
      { text: escapeText(role_id), colour: 'bold' as const },
      { text: escapeText(lane_id) },
      { text: escapeText(act) },
      { text: decision, colour: decision === 'allow' ? ('green' as const) : ('yellow' as const) },
      { text: escapeText(rule_id) },
    ]),
    paint,
  );
}

function findCommonDenial(pair: readonly MatrixCell[]): MatrixCell | null {
  const denied = pair.filter(({ decision }) => decision === 'deny');
  const [most] = groupCells(denied, ({ rule_id }) => rule_id).toSorted((a, b) => b.length - a.length);
  return most?.[0] ?? null;
}

function groupCells(cells: readonly MatrixCell[], keyOf: (cell: MatrixCell) => string): readonly MatrixCell[][] {
  const groups = new Map<string, MatrixCell[]>();
  for (const cell of cells) {
    const group = groups.get(keyOf(cell));
    if (group === undefined) groups.set(keyOf(cell), [cell]);
    else group.push(cell);
  }
  return [...groups.values()];
}

const OPTIONS = [
  REGISTRATIONS_OPTION,
  { name: 'accept', value: 'RULE', multiple: true, help: 'accept lint errors of this rule' },
  { name: 'reason', value: 'TEXT', multiple: true, help: 'the reason, one for each --accept; recorded in pins.json' },
] as const satisfies readonly CommandOption[];

type PinArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike policy pin`: writes pins.json, which gives runs the version of every policy file. */
const policyPin: CliCommand = defineCommand({
  name: 'policy pin',
  access: 'none',
  summary: 'Pin a policy: write pins.json into its contract folder',
  operands: NO_OPERANDS,
  options: OPTIONS,
  notes: [
    'A file without uncommitted changes is pinned by its last commit, any other file by the Git object id of its',
    'bytes. Active run trees keep the policy that they started with. A lint error (`turnpike policy check`) prevents',
    'the pin unless --accept names its rule. An acceptance holds for these exact bytes: after an edit it must be given',
    'again.',
  ],
  async run(args, io) {
    const contract = findContractFolder(args, io);
    if (!contract.isChosen)
      throw usageError('no contract folder: name one with --contract DIR, or create ./contract with `turnpike init`');
    const registrations = await readRegistrations(args, io);
    requireValidPolicy((await loadContract(contract, io, { pins: 'git', registrations })).check);
    const { accepted, refused } = await resolveAcceptance(contract, args, io);
    for (const caution of refused) await io.stderr.writeLine(escapeText(formatLintMessage(caution)));
    if (refused.length > 0) {
      await io.stderr.writeLine('not pinned: correct these errors, or accept them with --accept RULE --reason TEXT');
      return 1;
    }
    const manifest = pinManifest(await readPinnableFiles(contract.path), accepted);
    const path = join(contract.path, PIN_MANIFEST);
    await replaceFile(path, `${JSON.stringify(manifest, null, 2)}\n`);
    if (args.values.json) {
      await io.stdout.write(jsonLine(manifest));
      return 0;
    }
    for (const file of manifest.files) await io.stdout.write(`${file.git_sha}  ${escapeText(file.path)}\n`);
    await io.stdout.write(`pinned in ${escapeText(displayPath(path, io))}\n`);
    return 0;
  },
});

interface Acceptance {
  readonly accepted: readonly AcceptedCaution[];
  /** Errors that no operator has accepted. */
  readonly refused: readonly FileLintMessage[];
}

/** Acceptances of unchanged files stay; for other files, the arguments decide. */
async function resolveAcceptance(contract: ContractFolder, args: PinArguments, io: Io): Promise<Acceptance> {
  const newAcceptances = parseAcceptances(args);
  const earlierAcceptances = await readEarlierAcceptances(contract.path);
  const registrations = await readRegistrations(args, io);
  const errors = new Map<string, FileLintMessage>();
  for (const actions of await listActionsPolicies(contract.path)) {
    const loaded = await loadContract(contract, io, { pins: 'git', registrations, actions });
    for (const caution of collectLintErrors(loaded, io)) {
      if (caution.severity === 'error') errors.set(formatLintMessage(caution), caution);
    }
  }
  const unused = [...newAcceptances.keys()].find((rule) => ![...errors.values()].some((error) => error.rule === rule));
  if (unused !== undefined) throw args.usageError(`--accept ${unused}: the policy has no such lint error`);
  const accepted = new Map<string, AcceptedCaution>();
  const refused: FileLintMessage[] = [];
  for (const error of errors.values()) {
    const reason = newAcceptances.get(error.rule) ?? findAcceptanceReason(error, earlierAcceptances);
    const path = relative(contract.path, resolve(io.cwd, error.file)).split(sep).join('/');
    if (reason === null) refused.push(error);
    else {
      const { rule, sha256, message } = error;
      accepted.set(`${rule} ${path} ${message}`, { rule, path, sha256, reason, message });
    }
  }
  return { accepted: [...accepted.values()], refused };
}

/**
 * Parses the pairs `--accept RULE --reason TEXT`, each at most once.
 * @throws UsageError
 */
function parseAcceptances({ values, usageError: error }: PinArguments): ReadonlyMap<string, string> {
  const { accept: rules, reason: reasons } = values;
  if (rules.length !== reasons.length) throw error('each --accept RULE needs a --reason TEXT of its own');
  for (const [index, rule] of rules.entries()) {
    if (!(LINT_RULE_IDS as readonly string[]).includes(rule)) {
      throw error(`--accept takes a rule of \`turnpike policy check\`, not ${JSON.stringify(rule)}`);
    }
    const reason = reasons[index] ?? '';
    if (reason.trim() === '' || reason.length > REASON_CHARS_MAX || !reason.isWellFormed()) {
      throw error(`--reason takes 1 to ${REASON_CHARS_MAX} characters`);
    }
  }
  return new Map(rules.map((rule, index) => [rule, reasons[index] ?? '']));
}
const REASON_CHARS_MAX = 400;

/** Every actions policy in the folder: a run may choose any of them. */
async function listActionsPolicies(contract: string): Promise<readonly string[]> {
  const names = await readdir(join(contract, 'policy'));
  return names.filter((name) => /^actions(?:\.[A-Za-z0-9_-]+)*\.yaml$/u.test(name)).sort();
}

/** Lanes, roles, every actions policy, and the conditions and identities if there are any. */
async function readPinnableFiles(contract: string): Promise<readonly PinnableFile[]> {
  const files = new Map<string, PinnableFile>();
  for (const actions of await listActionsPolicies(contract)) {
    const loaded = await gitPolicySource(contract, { actions }).load();
    const paths = policyPaths({ actions });
    for (const name of presentFiles(loaded)) {
      const file = loaded[name];
      if (file !== undefined) files.set(paths[name], { path: paths[name], bytes: file.bytes, pin: file.pin });
    }
  }
  if (hasIdentities(contract)) {
    const { bytes, pin } = await identitiesSource(contract, 'git').load();
    files.set(IDENTITIES_PATH, { path: IDENTITIES_PATH, bytes, pin });
  }
  return [...files.values()];
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new-${process.pid}`;
  try {
    await writeFile(draft, text, { flag: 'wx' });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

// Errors of the linter that an operator has accepted, with a reason. Each acceptance is for one finding in the exact
// bytes of a file: it also applies to a copy of the file, but not to an edited version.

/** An error with the hash of the file that it is about. */
interface FileLintMessage extends LintMessage {
  readonly sha256: string;
}

/** The errors of a loaded policy, each with the hash of its file. */
function collectLintErrors({ files, identities, cautions }: LoadedPolicy, io: Io): readonly FileLintMessage[] {
  const all = [...valuesOf(files), ...(identities === null ? [] : [identities])];
  const hashes = new Map(all.map(({ path, bytes }) => [displayPath(path, io), sha256(bytes)]));
  return cautions.map((caution) => ({ ...caution, sha256: hashes.get(caution.file) ?? '' }));
}

/** The acceptances in the contract folder, and those that the package has for the files that it ships. */
const readEarlierAcceptances = async (contract: string): Promise<readonly AcceptedCaution[]> => [
  ...(await readAcceptedCautions(contract)),
  ...(await readAcceptedCautions(shippedContract())),
];

/** The reason for which this finding was accepted for exactly these bytes; null if it was not. */
const findAcceptanceReason = (caution: FileLintMessage, accepted: readonly AcceptedCaution[]): string | null =>
  accepted.find(
    ({ rule, sha256: of, message = caution.message }) =>
      rule === caution.rule && of === caution.sha256 && message === caution.message,
  )?.reason ?? null;

export const LINT_COMMANDS: readonly CommandGroup[] = [{ title: 'policy', commands: [policyCheck, policyPin] }];
