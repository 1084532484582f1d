// Judges pods as the API server does in a namespace labelled
// `pod-security.kubernetes.io/enforce: restricted`: with the very library that it uses.
//
// Standard input is a JSON array of pod templates ({"metadata": …, "spec": …}); standard output a JSON
// array with one text per pod: why it would be refused, empty if it would be admitted.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func main() {
	log.SetFlags(0)
	var pods []corev1.PodTemplateSpec
	input := json.NewDecoder(os.Stdin)
	input.DisallowUnknownFields()
	if err := input.Decode(&pods); err != nil {
		log.Fatal("admission: not an array of pod templates: ", err)
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		log.Fatal("admission: ", err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	verdicts := make([]string, len(pods))
	for i, pod := range pods {
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			verdicts[i] = fmt.Sprintf("violates PodSecurity %q: %s", level, result.ForbiddenDetail())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(verdicts); err != nil {
		log.Fatal("admission: ", err)
	}
}
