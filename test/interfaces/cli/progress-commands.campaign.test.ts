// All calls of the table, also those that `npm test` leaves out.

import './progress-commands.test.js';
