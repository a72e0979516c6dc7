import type { Client } from '../hook-event.js';
import type { ClientFacts, ClientFinding } from './client-facts.js';
import { itemFindings } from './findings.js';
import { judgeClaudeCode } from './judge-claude-code.js';
import { programFindings } from './hook-programs.js';
import { judgeCodex } from './judge-codex.js';
import { judgeGeminiCli } from './judge-gemini-cli.js';
import { judgeOpencode } from './judge-opencode.js';
import { judgeCline } from './judge-cline.js';
import { judgeCursor } from './judge-cursor.js';

const JUDGES: Readonly<Record<Client, (facts: ClientFacts) => readonly ClientFinding[]>> = {
  'claude-code': judgeClaudeCode,
  codex: judgeCodex,
  'gemini-cli': judgeGeminiCli,
  opencode: judgeOpencode,
  cline: judgeCline,
  cursor: judgeCursor,
};

/** What is wrong with a client on this machine, the findings that open the gate first. */
export const judgeClient = (facts: ClientFacts): readonly ClientFinding[] =>
  [...JUDGES[facts.client](facts), ...programFindings(facts), ...itemFindings(facts)].toSorted(
    (one, other) => Number(one.severity === 'note') - Number(other.severity === 'note'),
  );
