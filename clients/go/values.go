package baton

import (
	"encoding/json"
	"fmt"
)

// Values travel as bytes if they are bytes, else as JSON. A stored step must come back as the kind it was, in any
// language: JSON never begins with a NUL byte, so that byte marks raw bytes.
const rawMark = 0

// encode gives bytes unchanged, anything else as JSON.
func encode(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return raw, nil
	}
	return json.Marshal(value)
}

// optional encodes a value that may be left out: nil, and only that, stays nil.
func optional(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	data, err := encode(value)
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// decode is the inverse of encode for the type that is asked for; empty bytes are its zero value.
func decode[T any](data []byte) (T, error) {
	var value T
	if raw, ok := any(&value).(*[]byte); ok {
		*raw = data
		return value, nil
	}
	return value, fromJSON(data, &value)
}

// fromJSON leaves `into` as it is when there is nothing.
func fromJSON(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, into)
}

// toStored is a step's result as it is stored.
func toStored(value any) ([]byte, error) {
	if raw, ok := value.([]byte); ok {
		return append([]byte{rawMark}, raw...), nil
	}
	return json.Marshal(value)
}

// fromStored is a step's result as it was, but for what JSON does to it.
func fromStored[T any](stored []byte) (T, error) {
	if len(stored) == 0 || stored[0] != rawMark {
		return decode[T](stored)
	}
	var value T
	switch into := any(&value).(type) {
	case *[]byte:
		*into = stored[1:]
	case *any:
		*into = stored[1:]
	default:
		return value, fmt.Errorf("bytes cannot become %T", value)
	}
	return value, nil
}
