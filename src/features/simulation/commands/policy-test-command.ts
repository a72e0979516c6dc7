import { resolve } from 'node:path';
import { readSmallFile } from '../../../system/files/small-file.js';
import { PolicyError, usageError } from '../../../core/errors.js';
import { formatFinding } from '../../../core/policy/files/check-policy.js';
import { readPolicyTests } from '../policy-test-file.js';
import { runPolicyTest, type TestDecision } from '../policy-test.js';
import { asNamedPerson } from '../../../runtime/agents/caller-input.js';
import { defineCommand, type CliCommand } from '../../../interfaces/cli/command.js';
import type { Io } from '../../../interfaces/cli/io.js';
import {
  findContractFolder,
  loadContract,
  readRegistrations,
  REGISTRATIONS_OPTION,
  requireValidPolicy,
} from '../../../interfaces/cli/options/folders.js';
import { countText, createPainter, escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';

const FILES_MAX = 64;
const FILE_BYTES_MAX = 1_048_576;

/** `turnpike policy test`: runs decision tables against a policy. */
export const policyTest: CliCommand = defineCommand({
  name: 'policy test',
  access: 'none',
  summary: 'Run decision tables: for each request, whether policy decides as expected',
  operands: { usage: 'FILE...', min: 1, max: FILES_MAX },
  options: [REGISTRATIONS_OPTION, { name: 'junit', help: 'print the results as JUnit XML' }],
  notes: [
    'A file is YAML: `tests`, each with `name`, `request` and `expect`. A request has `role`, `lane`, `action` and',
    '`args`, and may have `case`, `scope`, `actor`, `person`, `time`, `label`, `files`, `counters` and `decisions`. An',
    'expectation has `decision` (allow, deny or approval), and may have `rule`, `quorum` and `roles`. No approval is',
    'granted, and no budget is used. The policy needs no pins. Exits 1 if a test fails. With --json: one line for each test.',
  ],
  async run(args, io) {
    const registrations = await readRegistrations(args, io);
    const { check } = await loadContract(findContractFolder(args, io), io, { registrations });
    const policy = requireValidPolicy(check);
    const results = args.operands.flatMap((file) =>
      readTests(file, io).map(({ test, line }) => ({
        file,
        line,
        name: test.name,
        ...runPolicyTest(test, policy, asNamedPerson),
      })),
    );
    const failed = results.filter(({ differences }) => differences.length > 0).length;
    const { junit, json } = args.values;
    if (junit) await io.stdout.write(junitText(results));
    else if (json) for (const result of results) await io.stdout.write(jsonLine(result));
    else {
      for (const result of results) await io.stdout.write(textOf(result, io));
      await io.stdout.write(`${countText(results.length - failed, 'test')} passed, ${failed} failed\n`);
    }
    return failed === 0 ? 0 : 1;
  },
});

function readTests(file: string, io: Io) {
  const bytes = readSmallFile(resolve(io.cwd, file), { bytesMax: FILE_BYTES_MAX });
  if (bytes === null) throw usageError(`${file} does not exist`);
  const { tests, findings } = readPolicyTests({ path: file, bytes });
  if (findings.length === 0) return tests;
  throw new PolicyError({ code: 'POLICY_INVALID', message: findings.map(formatFinding).join('\n') });
}

interface Result {
  readonly file: string;
  readonly line: number;
  readonly name: string;
  readonly decided: TestDecision;
  readonly differences: readonly string[];
}

function textOf({ file, line, name, decided, differences }: Result, io: Io): string {
  const paint = createPainter(io.colours);
  const mark = differences.length === 0 ? paint('✓', 'green') : paint('✗', 'red');
  const what = differences.length === 0 ? decidedText(decided) : [...differences, ...(decided.errors ?? [])].join('; ');
  return `${mark} ${escapeText(`${file}:${line} ${name}: ${what}`)}\n`;
}

function decidedText({ decision, rule, quorum, roles, errors = [] }: TestDecision): string {
  if (decision === 'approval') return `approval of ${quorum ?? 0} by ${roles?.join(' or ') ?? ''}`;
  const why = errors.length === 0 ? '' : `: ${errors.join('; ')}`;
  return rule === null ? decision : `${decision} (${rule}${why})`;
}

/** The results as JUnit XML, which CI systems read. */
function junitText(results: readonly Result[]): string {
  const failed = results.filter(({ differences }) => differences.length > 0).length;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites><testsuite name="policy" tests="${results.length}" failures="${failed}">`,
    ...results.map(testCaseXml),
    '</testsuite></testsuites>',
    '',
  ].join('\n');
}

function testCaseXml({ file, line, name, differences }: Result): string {
  const head = `<testcase classname="${escapeXml(file)}" name="${escapeXml(name)}" file="${escapeXml(file)}" line="${line}"`;
  if (differences.length === 0) return `${head}/>`;
  return `${head}><failure message="${escapeXml(differences.join('; '))}"/></testcase>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** XML 1.0 has no control characters, not even escaped ones. */
const escapeXml = (text: string): string =>
  text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
