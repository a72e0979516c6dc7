// What opens the tools that features add to an MCP server, in their order. They are no promise of the registry, as the
// routes. To remove a feature that has tools, remove its name here too.

import type { OpenTools } from '../interfaces/mcp/offer.js';
import { openSessionTools } from './sessions/tools/session-tools.js';

export const FEATURE_TOOLS: readonly OpenTools[] = [openSessionTools];
