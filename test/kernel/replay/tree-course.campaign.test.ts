// The courses of 100 random trees and 15 sessions.

import './tree-course.test.js';
