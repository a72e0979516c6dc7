// Serves one agent on two streams, until it disconnects.

import { serveStdio as serveSdkStdio } from '@modelcontextprotocol/server/stdio';
import { drawToken } from '../../stores/keys/access-token.js';
import { readSmallFile, replaceFile } from '../../system/files/small-file.js';
import { systemClock } from '../../system/system-clock.js';
import { RunId } from '../../core/contract/shapes.js';
import { isConforming } from '../../core/contract/validators.js';
import { waitAtMost } from '../../engine/timers.js';
import { PolicyError } from '../../core/errors.js';
import type { StoredRun } from './own-runs.js';
import type { RunGateway } from './run-gateway.js';
import { MISPLACED_MESSAGE, sdkServer } from './sdk-server.js';
import { createConnection, type McpService } from './mcp-service.js';
import { LineTransport, type StdioEnding, type StdioStreams } from './line-transport.js';

/** How long the last responses may take after the input has ended, in milliseconds. */
const LAST_RESPONSES_MS = 10_000;

/** Limit of subscriptions, none of which ever gets a notification. */
const SUBSCRIPTIONS_MAX = 16;

/** Options of an MCP server on stdin and stdout. */
export interface ServeStdioOptions extends StdioStreams {
  /** Aborted when the process should end. */
  readonly stop: AbortSignal;
  /**
   * The file that stores the id of the agent's run, so that the next server continues the run if this one is killed.
   * Null: not stored.
   */
  readonly note: string | null;
}

/**
 * Serves MCP until the client disconnects, or `stop` is aborted. If the agent closes its stream, its run ends. In every
 * other case the run stays active, as remote runs do, and the next server with this note continues it.
 */
export async function serveStdio(
  service: McpService,
  { stop, note, ...streams }: ServeStdioOptions,
): Promise<StdioEnding> {
  const connection = createConnection(
    service,
    drawToken(),
    note === null ? undefined : await loadStoredRun(note, service.agentRuns),
  );
  const transport = new LineTransport(streams);
  const closeTransport = (): void => void transport.close();
  stop.addEventListener('abort', closeTransport, { once: true });
  if (stop.aborted) closeTransport();
  // The first message determines which protocol the client speaks. The process serves one agent, so the connection is
  // the same for all.
  const server = serveSdkStdio(({ era }) => sdkServer(connection, service, era), {
    transport,
    maxSubscriptions: SUBSCRIPTIONS_MAX,
    onerror: () => service.log.info(MISPLACED_MESSAGE),
  });
  const ending = await transport.ending;
  stop.removeEventListener('abort', closeTransport);
  if (ending === 'end' || ending === 'too_large')
    await waitAtMost(systemClock(), LAST_RESPONSES_MS, transport.waitUntilIdle());
  if (ending === 'end') await connection.end();
  await server.close();
  return ending;
}

const NOTE_BYTES_MAX = 256;

/** The run of an earlier server, if the note names a run of the same agent. Losing the note loses nothing else. */
async function loadStoredRun(note: string, agentRuns: RunGateway): Promise<StoredRun> {
  const run_id = readNote(note);
  const storedRunId = run_id !== null && (await agentRuns.belongs(run_id)) ? run_id : null;
  return { run_id: storedRunId, keep: (own) => replaceFile(note, `${own}\n`, 0o600) };
}

function readNote(note: string): string | null {
  try {
    const bytes = readSmallFile(note, { bytesMax: NOTE_BYTES_MAX, forbiddenMode: 0o022 });
    const run_id = Buffer.from(bytes ?? [])
      .toString('latin1')
      .trim();
    return isConforming(RunId, run_id) ? run_id : null;
  } catch (error) {
    if (error instanceof PolicyError) return null;
    throw error;
  }
}
