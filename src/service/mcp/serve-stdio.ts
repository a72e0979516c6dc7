// One agent on two streams, for as long as it stays.

import { drawToken } from '../../adapters/access-token.js';
import { readSmallFile, replaceFile } from '../../adapters/small-file.js';
import { systemClock } from '../../adapters/system-clock.js';
import { RunId } from '../../contract/shapes.js';
import { conforms } from '../../contract/validators.js';
import { within } from '../../engine/timers.js';
import { PolicyError } from '../../errors.js';
import type { ConnectionOptions } from './connection.js';
import type { RunDoor } from './run-door.js';
import { sdkServer } from './sdk-server.js';
import { connect, type McpService } from './service.js';
import { LineTransport, type Leaving, type Streams } from './stdio.js';

/** How long the last answers may take when nothing more comes in. */
const LAST_ANSWERS_MS = 10_000;

export interface StdioServing extends Streams {
  /** Aborted when the process is to end. */
  readonly stop: AbortSignal;
  /**
   * File in which the agent's run is noted, so that the server that comes after this one, when this one is killed, goes
   * on with it. Null: not noted.
   */
  readonly note: string | null;
}

/**
 * Serves MCP until the other side leaves, or `stop`. An agent that has closed its end has said goodbye: its run ends.
 * In any other case the run lives on, as remote runs do, and the next server with this note takes it up.
 */
export async function serveStdio(service: McpService, { stop, note, ...streams }: StdioServing): Promise<Leaving> {
  const connection = connect(service, drawToken(), note === null ? undefined : await keptIn(note, service.door));
  const server = sdkServer(connection, service.version, service.log);
  const transport = new LineTransport(streams);
  const cut = (): void => void transport.close();
  stop.addEventListener('abort', cut, { once: true });
  if (stop.aborted) cut();
  await server.connect(transport);
  const leaving = await transport.left;
  stop.removeEventListener('abort', cut);
  if (leaving === 'end' || leaving === 'too_large') await within(systemClock(), LAST_ANSWERS_MS, transport.idle());
  if (leaving === 'end') await connection.end();
  await server.close();
  return leaving;
}

const NOTE_BYTES_MAX = 256;

/** The run of an earlier server, where the note names one of the same agent. Nothing more is lost with the note. */
async function keptIn(note: string, door: RunDoor): Promise<NonNullable<ConnectionOptions['kept']>> {
  const run_id = noted(note);
  const taken = run_id !== null && (await door.belongs(run_id)) ? run_id : null;
  return { run_id: taken, keep: (own) => replaceFile(note, `${own}\n`, 0o600) };
}

function noted(note: string): string | null {
  try {
    const bytes = readSmallFile(note, { bytesMax: NOTE_BYTES_MAX, forbiddenMode: 0o022 });
    const run_id = Buffer.from(bytes ?? [])
      .toString('latin1')
      .trim();
    return conforms(RunId, run_id) ? run_id : null;
  } catch (error) {
    if (error instanceof PolicyError) return null;
    throw error;
  }
}
