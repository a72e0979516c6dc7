// Every mapping of the tables, and every code point.

import './person.test.js';
