// SPDX-License-Identifier: Apache-2.0
// Command hyperk8s is every Kubernetes program of the end-to-end tests in one binary:
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl.
//
// The program is chosen by the name the binary is called by (build.sh makes the links), or by
// the first argument: "hyperk8s kubectl get pods". One binary because the five programs share
// nearly all of their code: linking them once saves minutes and several hundred megabytes.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // time zones of CronJobs

	"github.com/spf13/cobra"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // exec plugins and such in kubeconfig files
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// server runs a long-running component. The components install their own signal handling,
// so none may be installed here: a second handler ends in a panic.
func server(newCommand func() *cobra.Command) func() int {
	return func() int { return cli.Run(newCommand()) }
}

func runKubectl() int {
	// The verbosity is wanted while the command is being built, before its flags are parsed.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error and exits
	}
	return 0
}

var programs = map[string]func() int{
	"kube-apiserver":          server(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
	"kube-controller-manager": server(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubelet":                 server(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
	"kubectl":                 runKubectl,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		// Called by its own name: the program is the first argument, and the rest is its own.
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	run, known := programs[name]
	if !known {
		fmt.Fprintln(os.Stderr, "usage: hyperk8s PROGRAM [ARGUMENTS]   (or call it by a link named like the program)\n"+
			"programs: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl")
		os.Exit(2)
	}
	os.Exit(run())
}
