// Package browser tests the page in a real browser: headless Chromium, led by worldctl ui
// to worlds that the program itself made. It is a module of its own, since nothing else
// needs what drives a browser.
package browser
