import { usageError } from '../../../core/errors.js';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';
import { gitPolicySource } from '../../../home/policy/git-policy-source.js';
import { hasIdentities, identitiesSource } from '../../../home/policy/home-policy.js';
import { PIN_MANIFEST, pinManifest, type PinnableFile } from '../../../home/policy/manifest-policy-source.js';
import { policyPaths } from '../../../home/policy/policy-files.js';
import { IDENTITIES_PATH } from '../../../core/contract/policy/identities.js';
import { presentFiles, type AcceptedCaution } from '../../../core/contract/policy/pins.js';
import { formatLintMessage, LINT_RULE_IDS } from '../lint-rules.js';
import {
  readEarlierAcceptances,
  collectLintErrors,
  findAcceptanceReason,
  type FileLintMessage,
} from './accepted-lint-messages.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
} from '../../../interfaces/cli/command.js';
import {
  findContractFolder,
  loadContract,
  REGISTRATIONS_OPTION,
  readRegistrations,
  displayPath,
  requireValidPolicy,
  type ContractFolder,
} from '../../../interfaces/cli/options/folders.js';
import { type Io } from '../../../interfaces/cli/io.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const OPTIONS = [
  REGISTRATIONS_OPTION,
  { name: 'accept', value: 'RULE', multiple: true, help: 'accept lint errors of this rule' },
  { name: 'reason', value: 'TEXT', multiple: true, help: 'the reason, one for each --accept; recorded in pins.json' },
] as const satisfies readonly CommandOption[];

type PinArguments = ArgumentsOf<typeof OPTIONS>;

/** `turnpike policy pin`: writes pins.json, which gives runs the version of every policy file. */
export const policyPin: CliCommand = defineCommand({
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
