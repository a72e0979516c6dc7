import type { JsonObject } from '../../core/contract/json.js';
import type { Client, HookAnswer, HookEvent } from './hook-event.js';

/** What a hook command writes and returns, or what an HTTP endpoint answers. */
export interface HookReply {
  /** The JSON for the client; null if it gets none. */
  readonly body: JsonObject | null;
  /** The exit code of a command. */
  readonly exit: 0 | 2;
  /** What a command writes to standard error; empty for nothing. */
  readonly stderr: string;
}

/** How one client writes its events and reads the answers. Pure: it reads no clock, file or environment. */
export interface Dialect {
  readonly client: Client;
  /**
   * An event of the client, whose JSON was parsed strictly.
   * @returns the event, or null for one that cannot be understood: a call in it must be denied
   */
  readEvent(event: JsonObject): HookEvent | null;
  /** The reply to an event. */
  writeReply(answer: HookAnswer, event: JsonObject): HookReply;
  /** The reply that stops a call whose event could not be read or decided. */
  writeFailure(reason: string, event: JsonObject | null): HookReply;
}
