// A bag with 150 MB in one file, and more names.

import './round-trip.test.js';
