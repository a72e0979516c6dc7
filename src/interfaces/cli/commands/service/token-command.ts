import { usageError } from '../../../../core/errors.js';
import { nanoidIds } from '../../../../system/nanoid-ids.js';
import { systemClock } from '../../../../system/system-clock.js';
import { TokenFile } from '../../../../stores/keys/token-file.js';
import { RIGHTS, type TokenRecord } from '../../../../core/contract/token.js';
import { omitUndefined } from '../../../../core/omit-undefined.js';
import { requireHome, makeFolder } from '../../../../home/home.js';
import { quoteArgument } from '../../arguments.js';
import { defineCommand, NO_OPERANDS, type CliCommand, type CommandArguments } from '../../command.js';
import { integerType, wordType } from '../../option-types.js';
import { homeOf } from '../../options/folders.js';
import { type Io } from '../../io.js';
import { PERSON_OPTIONS } from '../../options/person-options.js';
import { escapeText, jsonLine, createPainter, table } from '../../text/terminal.js';

const DAYS_MAX = 3_650;

/** `turnpike token`: creates a token that identifies a caller over HTTP. */
export const token: CliCommand = defineCommand({
  name: 'token',
  access: 'write',
  summary: 'Create a bearer token for the HTTP service, and print it once',
  operands: NO_OPERANDS,
  options: [
    ...PERSON_OPTIONS,
    {
      name: 'right',
      value: 'RIGHT',
      type: wordType(RIGHTS),
      multiple: true,
      required: true,
      help: `one of ${RIGHTS.join(', ')}; may be repeated`,
    },
    { name: 'case', value: 'ID', help: 'the only case that it may access (default: any)' },
    {
      name: 'expires',
      value: 'DAYS',
      type: integerType({ min: 1, max: DAYS_MAX, takes: `a number of days up to ${DAYS_MAX}` }),
      help: 'how many days it is valid (default: until it is revoked)',
    },
  ],
  notes: [
    'observe: read everything. act: start agent runs as this actor and role, and propose in them; without observe, the',
    'token sees only its own runs. sessions: work through specs. approve: see pending approvals and vote on them.',
    'govern: start promotions and exports, cancel runs, settle unknown outcomes. Turnpike stores only the SHA-256 of a',
    'token. A running service accepts a new token at once.',
  ],
  async run(args, io) {
    const tokens = openForWriting(args, io);
    const { actor, role, right: rights, case: case_id, expires: days, json } = args.values;
    const minted = tokens.mint({ actor, role, rights, ...omitUndefined({ case: case_id, days }) }, nanoidIds());
    if (json) await io.stdout.write(jsonLine({ token: minted.token, ...toShownRecord(minted.record) }));
    else await io.stdout.write(`${minted.token}\n`);
    await io.stderr.writeLine(
      `${minted.record.id}: the token is not shown again; \`turnpike token revoke ${minted.record.id}\` revokes it`,
    );
    return 0;
  },
});

/** `turnpike token list`: lists tokens and their rights. */
export const tokenList: CliCommand = {
  name: 'token list',
  access: 'read',
  summary: 'List the tokens with their actors, roles and rights',
  operands: NO_OPERANDS,
  options: [],
  async run(args, io) {
    const records = openTokenFile(args, io).list();
    if (args.values.json) {
      for (const record of records) await io.stdout.write(jsonLine(toShownRecord(record)));
      return 0;
    }
    if (records.length === 0)
      await io.stderr.writeLine('no tokens: `turnpike token --actor NAME --role ROLE --right RIGHT` creates one');
    const rows = records.map(({ id, actor, role, case: case_id, rights, expires_at }) => [
      { text: id },
      { text: escapeText(`${actor} as ${role}${case_id === null ? '' : ` in ${case_id}`}`) },
      { text: rights.join(' ') },
      { text: expires_at === null ? 'until it is revoked' : `until ${expires_at}` },
    ]);
    if (rows.length > 0) await io.stdout.write(table(rows, createPainter(io.colours)));
    return 0;
  },
};

/** `turnpike token revoke`: makes a token invalid at once. */
export const tokenRevoke: CliCommand = {
  name: 'token revoke',
  access: 'write',
  summary: 'Revoke a token: a running service rejects it at once',
  operands: { usage: 'ID', min: 1, max: 1 },
  options: [],
  async run(args, io) {
    const [id = ''] = args.operands;
    if (!openForWriting(args, io).revoke(id))
      throw usageError(`there is no token ${quoteArgument(id)}: \`turnpike token list\` prints all tokens`);
    await io.stderr.writeLine(`${id} is revoked`);
    return 0;
  },
};

function openTokenFile(args: CommandArguments, io: Io): TokenFile {
  const paths = homeOf(args, io);
  requireHome(paths.home);
  return new TokenFile(paths.tokens, systemClock());
}

function openForWriting(args: CommandArguments, io: Io): TokenFile {
  const tokens = openTokenFile(args, io);
  makeFolder(homeOf(args, io).keys);
  return tokens;
}

const toShownRecord = (record: TokenRecord): object =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== 'sha256'));
