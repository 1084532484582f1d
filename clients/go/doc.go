// Package baton is the Go client of the Baton sidecar.
//
// [App] is an app beside its sidecar: register handlers and hooks on it, then [App.Run] it. [Sidecar] alone is for
// programs that only call the sidecar. The messages of the contract are in package batonv1.
//
// Everything below a handler or a hook is cancelled through its context when the call is cancelled, the term ends,
// or the trust time runs out; [context.Cause] says which.
package baton
