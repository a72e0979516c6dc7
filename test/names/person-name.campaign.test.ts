// Every mapping of the tables, and every code point.

import './person-name.test.js';
